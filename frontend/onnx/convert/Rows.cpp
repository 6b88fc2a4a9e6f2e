#include "frontend/onnx/convert/Rows.h"

#include "frontend/raise/Matching.h"

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

Shape withRows(ArrayRef<Value> values, ArrayRef<int64_t> shape) {
  Shape all{static_cast<int64_t>(values.size())};
  all.insert(all.end(), shape.begin(), shape.end());
  return all;
}

SmallVector<Value> operandsOf(ArrayRef<Value> values, unsigned operand) {
  return llvm::map_to_vector(
      values, [&](Value value) { return value.getDefiningOp()->getOperand(operand); });
}

/// Do all `values`, of one type, come of ops of this kind that are `alike` the first of them?
template <typename OpTy>
bool areAlike(ArrayRef<Value> values, llvm::function_ref<bool(OpTy, OpTy)> alike) {
  auto first = values.front().getDefiningOp<OpTy>();
  return first && llvm::all_of(values, [&](Value value) {
           auto op = value.getDefiningOp<OpTy>();
           return op && value.getType() == values.front().getType() && alike(first, op);
         });
}

/// The runs along the first dimension that `values` are, in order, of all of it: that tensor.
Value rowsOfRuns(const Conversion& c, ArrayRef<Value> values) {
  auto first = values.front().getDefiningOp<SliceOp>();
  if (!first)
    return {};
  const Shape whole = c.shapeOf(first.getOperand()), piece = c.shapeOf(first.getResult());
  if (piece.front() * static_cast<int64_t>(values.size()) != whole.front())
    return {};
  for (auto [i, value] : llvm::enumerate(values)) {
    auto slice = value.getDefiningOp<SliceOp>();
    Shape offsets(whole.size(), 0), steps(whole.size(), 1);
    offsets.front() = static_cast<int64_t>(i) * piece.front();
    if (!slice || slice.getOperand() != first.getOperand() || c.shapeOf(value) != piece ||
        slice.getOffsets() != ArrayRef<int64_t>(offsets) ||
        slice.getStrides() != ArrayRef<int64_t>(steps))
      return {};
  }
  return c.reshaped(first.getOperand(), withRows(values, piece));
}

/// `value` times `factor`, under another shape.
struct Scaled {
  Value value;
  double factor = 1;
};

Scaled scaledBy(Value value) {
  Scaled found{value};
  while (Operation* op = found.value.getDefiningOp()) {
    std::optional<double> constant =
        isa<MulOp, DivOp>(op) ? splatOf(op->getOperand(1)) : std::nullopt;
    if (isa<MulOp>(op) && constant)
      found.factor *= *constant;
    else if (isa<DivOp>(op) && constant && *constant != 0)
      found.factor /= *constant;
    else if (!isa<ReshapeOp>(op))
      break;
    found.value = op->getOperand(0);
  }
  return found;
}

/// torch.export writes the mean of the last bag as a quotient, those of the others as means.
Value rowsOfScaled(const Conversion& c, ArrayRef<Value> values) {
  const Scaled first = scaledBy(values.front());
  SmallVector<Value> unscaled;
  for (Value value : values) {
    const Scaled scaled = scaledBy(value);
    if (value.getType() != values.front().getType() || !isClose(scaled.factor, first.factor))
      return {};
    unscaled.push_back(scaled.value);
  }
  if (first.value == values.front())
    return {};
  Value rows = rowsOf(c, unscaled);
  if (!rows)
    return {};
  rows = c.reshaped(rows, withRows(values, c.shapeOf(values.front())));
  return first.factor == 1 ? rows : c.scale(rows, first.factor);
}

Value rowsOfReductions(const Conversion& c, ArrayRef<Value> values) {
  if (!areAlike<ReduceOp>(values, [](ReduceOp a, ReduceOp b) {
        return a.getKind() == b.getKind() && a.getDims() == b.getDims();
      }))
    return {};
  auto first = values.front().getDefiningOp<ReduceOp>();
  Value rows = rowsOf(c, operandsOf(values, 0));
  SmallVector<int64_t> dims =
      llvm::map_to_vector(first.getDims(), [](int64_t dim) { return dim + 1; });
  return rows ? c.reduce(first.getKind(), rows, dims) : Value();
}

Value rowsOfLookups(const Conversion& c, ArrayRef<Value> values) {
  if (!areAlike<EmbeddingOp>(values, [](EmbeddingOp a, EmbeddingOp b) {
        return a.getTable() == b.getTable() && a.getPaddingAttr() == b.getPaddingAttr();
      }))
    return {};
  auto first = values.front().getDefiningOp<EmbeddingOp>();
  Value indices = rowsOf(c, operandsOf(values, 1));
  if (!indices)
    return {};
  auto rows = c.create<EmbeddingOp>(first.getTable(), indices);
  rows.setPaddingAttr(first.getPaddingAttr());
  return rows;
}

} // namespace

Value rowsOf(const Conversion& c, ArrayRef<Value> values) {
  if (Value rows = rowsOfRuns(c, values))
    return rows;
  if (Value rows = rowsOfScaled(c, values))
    return rows;
  if (Value rows = rowsOfReductions(c, values))
    return rows;
  return rowsOfLookups(c, values);
}

Result<Value> stacked(const Conversion& c, ArrayRef<Value> values) {
  if (Value rows = rowsOf(c, values))
    return rows;
  SmallVector<Value> rows = llvm::map_to_vector(values, [&](Value value) {
    Shape shape = c.shapeOf(value);
    shape.insert(shape.begin(), 1);
    return c.reshape(value, shape);
  });
  return c.joined(rows, 0);
}

} // namespace titan::frontend
