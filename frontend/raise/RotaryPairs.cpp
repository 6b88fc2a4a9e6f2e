#include "frontend/raise/RotaryPairs.h"

#include "frontend/raise/Layout.h"
#include "frontend/raise/Matching.h"

using namespace mlir;

namespace titan::frontend {

bool cutsLastOnly(ir::SliceOp slice) {
  ArrayRef<int64_t> from = ir::tensorType(slice.getOperand()).getShape();
  ArrayRef<int64_t> to = ir::tensorType(slice.getResult()).getShape();
  return from.drop_back() == to.drop_back();
}

std::optional<Part> matchPart(Value value) {
  // Indexing a column leaves a last dimension of 1, which a reshape drops.
  if (auto reshape = value.getDefiningOp<ir::ReshapeOp>()) {
    SmallVector<int64_t> column(ir::tensorType(value).getShape());
    column.push_back(1);
    if (ir::tensorType(reshape.getOperand()).getShape() == ArrayRef<int64_t>(column))
      value = reshape.getOperand();
  }
  auto slice = value.getDefiningOp<ir::SliceOp>();
  if (!slice || !cutsLastOnly(slice))
    return std::nullopt;
  int64_t offset = slice.getOffsets().back(), stride = slice.getStrides().back();
  int64_t wide = lastExtent(slice.getOperand()), narrow = lastExtent(value);
  if (narrow == 1 && wide == 2) {
    SmallVector<int64_t> flat(ir::tensorType(slice.getOperand()).getShape().drop_back());
    if (flat.empty())
      return std::nullopt;
    flat.back() *= 2;
    auto pairs = slice.getOperand().getDefiningOp<ir::ReshapeOp>();
    return Part{pairs ? pairs.getOperand() : slice.getOperand(), flat, Pairing::Neighbours,
                offset == 1};
  }
  if (wide != 2 * narrow)
    return std::nullopt;
  SmallVector<int64_t> shape(ir::tensorType(slice.getOperand()).getShape());
  if (stride == 1 && (offset == 0 || offset == narrow))
    return Part{slice.getOperand(), shape, Pairing::Halves, offset != 0};
  if (stride == 2)
    return Part{slice.getOperand(), shape, Pairing::Neighbours, offset == 1};
  return std::nullopt;
}

std::optional<Join> matchJoin(Value value) {
  auto joined = [](ir::ConcatOp op) {
    return op && op.getInputs().size() == 2 &&
           static_cast<int64_t>(op.getDim()) == ir::tensorType(op.getResult()).getRank() - 1 &&
           op.getInputs()[0].getType() == op.getInputs()[1].getType();
  };
  if (auto concat = value.getDefiningOp<ir::ConcatOp>())
    return joined(concat)
               ? std::optional(Join{concat.getInputs()[0], concat.getInputs()[1], Pairing::Halves})
               : std::nullopt;
  // Columns that were stacked.
  auto reshape = value.getDefiningOp<ir::ReshapeOp>();
  auto stack = reshape ? reshape.getOperand().getDefiningOp<ir::ConcatOp>() : ir::ConcatOp();
  if (!joined(stack) || lastExtent(stack.getResult()) != 2)
    return std::nullopt;
  Join join{{}, {}, Pairing::Neighbours};
  for (auto [part, input] :
       {std::pair(&join.first, stack.getInputs()[0]), {&join.second, stack.getInputs()[1]}}) {
    auto column = input.getDefiningOp<ir::ReshapeOp>();
    bool added = column && ir::tensorType(column.getOperand()).getShape() ==
                               ir::tensorType(input).getShape().drop_back();
    *part = added ? column.getOperand() : input;
  }
  return join;
}

bool isWhole(const Part& part, Value x) {
  if (part.shape != ir::tensorType(x).getShape())
    return false;
  auto reshape = x.getDefiningOp<ir::ReshapeOp>();
  return part.source == x || (reshape && part.source == reshape.getOperand());
}

std::optional<Table> matchTable(Value value) {
  auto broadcast = value.getDefiningOp<ir::BroadcastOp>();
  ArrayRef<int64_t> wide = ir::tensorType(value).getShape();
  bool columns = wide.size() == 5 && wide.back() == 1;
  if (!broadcast || (wide.size() != 3 && wide.size() != 4 && !columns))
    return std::nullopt;
  int64_t width = wide.size() == 3 ? 2 : 3;
  Table table{broadcast.getOperand(), {}, {}};
  for (int64_t d : broadcast.getDims())
    if (d <= width && (wide[d] != 1 || d == width)) {
      table.shape.push_back(wide[d]);
      table.dims.push_back(d);
    }
  bool perSample = table.dims.size() == 3 && table.dims.front() == 0;
  if ((table.dims.size() != 2 && !perSample) || table.dims.back() != width ||
      table.dims[table.dims.size() - 2] == 0)
    return std::nullopt;
  return table;
}

bool isNegated(const Table& a, const Table& b) {
  if (a.dims != b.dims || a.shape != b.shape)
    return false;
  Value left = throughBroadcast(a.value), right = throughBroadcast(b.value);
  auto elements = [](Value value) {
    auto constant = value.getDefiningOp<ir::ConstantOp>();
    return constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : DenseFPElementsAttr();
  };
  if (auto p = elements(left), q = elements(right); p && q)
    return p.getNumElements() == q.getNumElements() &&
           llvm::all_of(llvm::zip(p.getValues<APFloat>(), q.getValues<APFloat>()),
                        [](auto pair) { return std::get<0>(pair) == neg(std::get<1>(pair)); });
  auto isNegOf = [](Value value, Value other) {
    auto neg = value.getDefiningOp<ir::NegOp>();
    return neg && throughBroadcast(neg.getOperand()) == other;
  };
  return isNegOf(left, right) || isNegOf(right, left);
}

/// `steps` bounds how much is looked at, and thereby what `firstOfPairs` builds.
static bool repeatsPairs(Value table, Pairing pairing, int& steps) {
  if (--steps < 0)
    return false;
  if (auto constant = table.getDefiningOp<ir::ConstantOp>()) {
    auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!dense)
      return false;
    if (dense.isSplat())
      return true;
    int64_t width = lastExtent(table);
    auto values = dense.getValues<Attribute>();
    for (int64_t i = 0; i < dense.getNumElements(); i += width)
      for (int64_t k = 0; k < width / 2; ++k)
        if (pairing == Pairing::Halves ? values[i + k] != values[i + k + width / 2]
                                       : values[i + 2 * k] != values[i + 2 * k + 1])
          return false;
    return true;
  }
  if (auto join = matchJoin(table))
    return join->first == join->second && join->pairing == pairing;
  Operation* op = table.getDefiningOp();
  if (!op)
    return false;
  // A repeated dimension of extent 2, flattened: repeat_interleave.
  if (auto reshape = dyn_cast<ir::ReshapeOp>(op)) {
    ArrayRef<int64_t> to = ir::tensorType(table).getShape();
    ArrayRef<int64_t> from = ir::tensorType(reshape.getOperand()).getShape();
    if (from.back() == to.back())
      return repeatsPairs(reshape.getOperand(), pairing, steps);
    auto broadcast = reshape.getOperand().getDefiningOp<ir::BroadcastOp>();
    auto isPair = [&](size_t back) {
      auto d = static_cast<int64_t>(from.size() - back);
      return from[d] == 2 && !llvm::is_contained(broadcast.getDims(), d);
    };
    return broadcast && from.size() >= 2 && from[from.size() - 2] * from.back() == to.back() &&
           isPair(pairing == Pairing::Halves ? 2 : 1);
  }
  if (auto broadcast = dyn_cast<ir::BroadcastOp>(op)) {
    auto rank = ir::tensorType(table).getRank();
    return !broadcast.getDims().empty() && broadcast.getDims().back() == rank - 1 &&
           repeatsPairs(broadcast.getOperand(), pairing, steps);
  }
  // Elementwise ops of such tensors, and of constants that are the same everywhere.
  return isElementwise(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
           return splatOf(operand) || repeatsPairs(operand, pairing, steps);
         });
}

bool repeatsPairs(Value table, Pairing pairing) {
  int steps = 64;
  return repeatsPairs(table, pairing, steps);
}

/// A constant of `shape` with the one value that `value` has.
static Value reshapedSplat(const ir::TensorBuilder& b, Value value, ArrayRef<int64_t> shape) {
  return b.splat(ir::tensorType(value).clone(shape), *splatOf(value));
}

Value firstOfPairs(const ir::TensorBuilder& b, Value table, Pairing pairing) {
  RankedTensorType type = ir::tensorType(table);
  SmallVector<int64_t> shape(type.getShape()), offsets(type.getRank(), 0),
      strides(type.getRank(), 1);
  shape.back() /= 2;
  if (pairing == Pairing::Neighbours)
    strides.back() = 2;
  if (auto constant = table.getDefiningOp<ir::ConstantOp>()) {
    auto dense = cast<DenseElementsAttr>(constant.getValue());
    SmallVector<Attribute> kept;
    int64_t width = type.getShape().back();
    auto values = dense.getValues<Attribute>();
    for (int64_t i = 0; i < dense.getNumElements(); i += width)
      for (int64_t k = 0; k < width / 2; ++k)
        kept.push_back(values[i + k * strides.back()]);
    return b.create<ir::ConstantOp>(
        cast<TypedAttr>(cast<ElementsAttr>(DenseElementsAttr::get(type.clone(shape), kept))));
  }
  if (auto join = matchJoin(table);
      join && ir::tensorType(join->first).getShape() == ArrayRef<int64_t>(shape))
    return join->first;
  // cos(join(a, a)) is join(cos(a), cos(a)).
  if (Operation* op = table.getDefiningOp(); op && isElementwise(op)) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(splatOf(operand) ? reshapedSplat(b, operand, shape)
                                          : firstOfPairs(b, operand, pairing));
    return cloneElementwise(b.builder, op, operands);
  }
  return b.create<ir::SliceOp>(type.clone(shape), table, ArrayRef<int64_t>(offsets),
                               ArrayRef<int64_t>(strides));
}

} // namespace titan::frontend
