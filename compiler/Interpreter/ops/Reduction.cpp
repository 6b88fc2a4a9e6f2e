// Meaning of the reductions.
#include "compiler/Interpreter/Models.h"
#include "compiler/Interpreter/Rows.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::interpreter {

namespace {

Reduction reductionOf(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Sum:
    return Reduction::Sum;
  case ReduceKind::Prod:
    return Reduction::Product;
  case ReduceKind::Max:
    return Reduction::Max;
  case ReduceKind::Min:
    return Reduction::Min;
  }
  return Reduction::Sum;
}

LogicalResult reduce(ReduceOp op, Frame& frame) {
  Rows rows(frame.get(op.getOperand()), op.getDims());
  Tensor result(cast<ShapedType>(op.getType()));
  if (result.isFloat())
    reduceRows(rows, reductionOf(op.getKind()), result.mutableFloats());
  else
    reduceRows(rows, reductionOf(op.getKind()), result.mutableIntegers());
  frame.set(op, std::move(result));
  return success();
}

template <typename T> int64_t firstLargest(ArrayRef<T> row) {
  int64_t best = 0;
  for (auto [i, x] : llvm::enumerate(row))
    if (x > row[best] || (x != x && row[best] == row[best]))
      best = i;
  return best;
}

LogicalResult argmax(ArgmaxOp op, Frame& frame) {
  Rows rows(frame.get(op.getOperand()), {static_cast<int64_t>(op.getDim())});
  Tensor result(cast<ShapedType>(op.getType()));
  for (auto [i, index] : llvm::enumerate(result.mutableIntegers()))
    index = rows.tensor.isFloat() ? firstLargest(rows.floats(i)) : firstLargest(rows.integers(i));
  frame.setExact(op, std::move(result));
  return success();
}

} // namespace

void attachReduction(MLIRContext* context) {
  attach<ReduceOp, reduce>(context);
  attach<ArgmaxOp, argmax>(context);
}

} // namespace titan::interpreter
