#include "frontend/raise/Layout.h"
#include "frontend/raise/Matching.h"
#include "frontend/raise/Passes.h"
#include "frontend/raise/RaisePass.h"

using namespace mlir;

namespace titan::frontend {

#define GEN_PASS_DEF_RAISEROTARY
#include "frontend/raise/Passes.h.inc"

namespace {

/// Which elements of the last dimension belong together: i and i + D / 2, or 2 i and 2 i + 1.
enum class Pairing { Halves, Neighbours };

/// One element of each pair: the first or the second.
struct Part {
  Value source;               ///< a reshape of
  SmallVector<int64_t> shape; ///< [..., D]
  Pairing pairing = Pairing::Halves;
  bool second = false;
};

int64_t lastExtent(Value value) { return ir::tensorType(value).getShape().back(); }

/// Is `slice` the whole of every dimension but the last?
bool cutsLastOnly(ir::SliceOp slice) {
  ArrayRef<int64_t> from = ir::tensorType(slice.getOperand()).getShape();
  ArrayRef<int64_t> to = ir::tensorType(slice.getResult()).getShape();
  return from.drop_back() == to.drop_back();
}

/// A [..., D / 2] slice of [..., D], or a column of the [..., D / 2, 2] that it was reshaped to.
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

/// Two tensors [..., D / 2] joined to [..., D], in whatever shape.
struct Join {
  Value first, second;
  Pairing pairing = Pairing::Halves;
};

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
    if (!column || ir::tensorType(column.getOperand()).getShape() !=
                       ir::tensorType(input).getShape().drop_back())
      return std::nullopt;
    *part = column.getOperand();
  }
  return join;
}

/// Is `part` one of x?
bool isWhole(const Part& part, Value x) {
  if (part.shape != ir::tensorType(x).getShape())
    return false;
  auto reshape = x.getDefiningOp<ir::ReshapeOp>();
  return part.source == x || (reshape && part.source == reshape.getOperand());
}

/// The angles of one tensor: per position, and perhaps per sample.
struct Table {
  Value value;
  SmallVector<int64_t>
      shape;                 ///< to give it: [T, R] or [B, T, R], R pairs or twice as many elements
  SmallVector<int64_t> dims; ///< of the rotated tensor, one for each dimension of `shape`
};

std::optional<Table> matchTable(Value value) {
  auto broadcast = value.getDefiningOp<ir::BroadcastOp>();
  ArrayRef<int64_t> wide = ir::tensorType(value).getShape();
  if (!broadcast || wide.size() != 4)
    return std::nullopt;
  Table table{broadcast.getOperand(), {}, {}};
  for (int64_t d : broadcast.getDims())
    if (wide[d] != 1 || d == 3) {
      table.shape.push_back(wide[d]);
      table.dims.push_back(d);
    }
  bool perSample = table.dims.size() == 3 && table.dims.front() == 0;
  if ((table.dims.size() != 2 && !perSample) || table.dims.back() != 3 ||
      table.dims[table.dims.size() - 2] == 0)
    return std::nullopt;
  return table;
}

/// The dimension of the rotated [B, _, _, D] that holds positions: 1 or 2.
int64_t positionDim(const Table& table) { return table.dims[table.dims.size() - 2]; }

/// Is each pair of columns of `table` one column twice? Exporters write the concatenation of the
/// angles with themselves.
bool repeatsPairs(Value table, Pairing pairing) {
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
      return repeatsPairs(reshape.getOperand(), pairing);
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
           repeatsPairs(broadcast.getOperand(), pairing);
  }
  // Elementwise ops of such tensors, and of constants that are the same everywhere.
  return isElementwise(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
           return splatOf(operand) || repeatsPairs(operand, pairing);
         });
}

/// A constant of `shape` with the one value that `value` has.
Value reshapedSplat(const ir::TensorBuilder& b, Value value, ArrayRef<int64_t> shape) {
  return b.splat(ir::tensorType(value).clone(shape), *splatOf(value));
}

/// Every first element of the pairs of `table`, of which `repeatsPairs` holds.
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

/// The table of one element per pair in the shape that titan.rotary wants.
Value inShape(const ir::TensorBuilder& b, const Table& table, Value perPair) {
  SmallVector<int64_t> shape = table.shape;
  shape.back() = lastExtent(perPair);
  return reshaped(b, perPair, shape);
}

/// x turned by the angles. Sequences are [B, T, H, D]; where x has heads before positions, it is
/// transposed and back.
Value rotated(const ir::TensorBuilder& b, Value x, int64_t positions, Value cos, Value sin,
              Pairing pairing) {
  bool headsFirst = positions == 2;
  SmallVector<int64_t> swap = {0, 2, 1, 3};
  Value operand = headsFirst ? transposed(b, x, swap) : x;
  Value result =
      b.create<ir::RotaryOp>(operand.getType(), operand, cos, sin,
                             pairing == Pairing::Neighbours ? b.builder.getUnitAttr() : UnitAttr());
  return headsFirst ? b.transpose(result, swap) : result;
}

/// The two factors of a product, a table second.
std::optional<std::pair<Value, Table>> matchTimesTable(Value value) {
  auto mul = value.getDefiningOp<ir::MulOp>();
  if (!mul)
    return std::nullopt;
  for (auto [x, table] : {std::pair(mul.getLhs(), mul.getRhs()), {mul.getRhs(), mul.getLhs()}})
    if (auto found = matchTable(table))
      return std::pair(x, *found);
  return std::nullopt;
}

/// x cos + join(-second(x), first(x)) sin
struct RaiseTurned : RaisePattern<ir::AddOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::AddOp op, ir::TensorBuilder& b) const override {
    auto left = matchTimesTable(op.getLhs()), right = matchTimesTable(op.getRhs());
    if (!left || !right || left->second.dims != right->second.dims)
      return {};
    for (auto [straight, turned] : {std::pair(*left, *right), {*right, *left}}) {
      Value x = straight.first;
      auto join = matchJoin(turned.first);
      auto neg = join ? join->first.getDefiningOp<ir::NegOp>() : ir::NegOp();
      auto second = neg ? matchPart(neg.getOperand()) : std::nullopt;
      auto first = neg ? matchPart(join->second) : std::nullopt;
      if (!first || !second || !isWhole(*first, x) || !isWhole(*second, x) || first->second ||
          !second->second || first->pairing != join->pairing || second->pairing != join->pairing)
        continue;
      Pairing pairing = join->pairing;
      Value cos = straight.second.value, sin = turned.second.value;
      if (!repeatsPairs(cos, pairing) || !repeatsPairs(sin, pairing))
        continue;
      return rotated(b, x, positionDim(straight.second),
                     inShape(b, straight.second, firstOfPairs(b, cos, pairing)),
                     inShape(b, turned.second, firstOfPairs(b, sin, pairing)), pairing);
    }
    return {};
  }
};

/// join(first(x) cos - second(x) sin, second(x) cos + first(x) sin)
template <typename Op> struct RaiseJoined : RaisePattern<Op> {
  using RaisePattern<Op>::RaisePattern;

  Value raise(Op op, ir::TensorBuilder& b) const override {
    auto join = matchJoin(op->getResult(0));
    auto sub = join ? join->first.template getDefiningOp<ir::SubOp>() : ir::SubOp();
    auto add = sub ? join->second.template getDefiningOp<ir::AddOp>() : ir::AddOp();
    if (!add)
      return {};
    auto firstCos = term(sub.getLhs(), join->pairing),
         secondSin = term(sub.getRhs(), join->pairing);
    if (!firstCos || !secondSin || firstCos->part.second || !secondSin->part.second)
      return {};
    for (auto [a, c] : {std::pair(add.getLhs(), add.getRhs()), {add.getRhs(), add.getLhs()}}) {
      auto secondCos = term(a, join->pairing), firstSin = term(c, join->pairing);
      if (!secondCos || !firstSin || !secondCos->part.second || firstSin->part.second ||
          !sameTable(firstCos->table, secondCos->table) ||
          !sameTable(secondSin->table, firstSin->table) ||
          firstCos->table.dims != firstSin->table.dims)
        continue;
      if (!samePart(secondSin->part, firstCos->part) ||
          !samePart(secondCos->part, firstCos->part) || !samePart(firstSin->part, firstCos->part))
        continue;
      Value x = reshaped(b, firstCos->part.source, firstCos->part.shape);
      const Table &cos = firstCos->table, &sin = firstSin->table;
      Value turned = rotated(b, x, positionDim(cos), inShape(b, cos, cos.value),
                             inShape(b, sin, sin.value), join->pairing);
      return reshaped(b, turned, ir::tensorType(op->getResult(0)).getShape());
    }
    return {};
  }

private:
  struct Term {
    Part part;
    Table table;
  };
  static std::optional<Term> term(Value value, Pairing pairing) {
    auto product = matchTimesTable(value);
    auto part = product ? matchPart(product->first) : std::nullopt;
    if (!part || part->pairing != pairing || part->shape.size() != 4)
      return std::nullopt;
    return Term{*part, product->second};
  }
  static bool samePart(const Part& a, const Part& b) {
    return a.source == b.source && a.shape == b.shape;
  }
  static bool sameTable(const Table& a, const Table& b) {
    return a.value == b.value && a.dims == b.dims;
  }
};

/// Partial rotation: concat(rotary(the first R of x), the rest of x).
struct FoldRest : RaisePattern<ir::ConcatOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::ConcatOp op, ir::TensorBuilder& b) const override {
    if (op.getInputs().size() != 2 ||
        static_cast<int64_t>(op.getDim()) != ir::tensorType(op.getResult()).getRank() - 1)
      return {};
    // The rotation may stand between transpositions that leave the last dimension alone.
    auto outer = op.getInputs()[0].getDefiningOp<ir::TransposeOp>();
    auto rotary = (outer ? outer.getOperand() : op.getInputs()[0]).getDefiningOp<ir::RotaryOp>();
    if (!rotary || !rotary.getResult().hasOneUse() || (outer && !outer->hasOneUse()))
      return {};
    auto inner = rotary.getOperand().getDefiningOp<ir::TransposeOp>();
    if (static_cast<bool>(outer) != static_cast<bool>(inner) ||
        (outer && inverse(outer.getPermutation()) != inner.getPermutation()))
      return {};
    auto turned = (inner ? inner.getOperand() : rotary.getOperand()).getDefiningOp<ir::SliceOp>();
    auto rest = op.getInputs()[1].getDefiningOp<ir::SliceOp>();
    if (!turned || !rest || turned.getOperand() != rest.getOperand() ||
        turned.getOperand().getType() != op.getType() || !cutsLastOnly(turned) ||
        !cutsLastOnly(rest) || turned.getOffsets().back() != 0 || turned.getStrides().back() != 1 ||
        rest.getStrides().back() != 1 || rest.getOffsets().back() != lastExtent(turned.getResult()))
      return {};
    b.path = joinedPath(rotary, op);
    Value x = turned.getOperand();
    if (inner)
      x = transposed(b, x, inner.getPermutation());
    Value result = b.create<ir::RotaryOp>(x.getType(), x, rotary.getCos(), rotary.getSin(),
                                          rotary.getInterleavedAttr());
    return outer ? b.transpose(result, outer.getPermutation()) : result;
  }
};

struct RaiseRotary : RaisePass<impl::RaiseRotaryBase<RaiseRotary>, ir::RotaryOp> {
  void addPatterns(RewritePatternSet& set) const override {
    set.add<RaiseTurned, RaiseJoined<ir::ConcatOp>, RaiseJoined<ir::ReshapeOp>, FoldRest>(
        set.getContext());
  }
};

} // namespace
} // namespace titan::frontend
