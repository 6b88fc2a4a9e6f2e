// Meaning of titan.pool and titan.max_pool_grad.
#include "compiler/Interpreter/Models.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::interpreter {

namespace {

/// The index of the element with this row-major number.
SmallVector<int64_t> indexOf(int64_t number, ArrayRef<int64_t> extents) {
  return delinearize(number, computeStrides(extents));
}

/// Calls `visit` with each element of the operand that the window at `position` has, in row-major
/// order of the window.
template <typename Op>
void forEachElement(Op op, ArrayRef<int64_t> position, ArrayRef<int64_t> operand,
                    llvm::function_ref<void(int64_t)> visit) {
  for (int64_t t = 0, taps = ShapedType::getNumElements(op.getWindow()); t < taps; ++t) {
    SmallVector<int64_t> index = indexOf(t, op.getWindow());
    bool isInside = true;
    for (size_t d = 0; d < index.size(); ++d) {
      index[d] =
          position[d] * op.getStrides()[d] + index[d] * op.getDilations()[d] - op.getLow()[d];
      isInside &= index[d] >= 0 && index[d] < operand[d];
    }
    if (isInside)
      visit(linearize(index, computeStrides(operand)));
  }
}

template <typename T>
void combineWindows(PoolOp op, ArrayRef<int64_t> operand, ArrayRef<T> x, MutableArrayRef<T> y) {
  const bool isMax = op.getKind() == ReduceKind::Max;
  for (auto [p, result] : llvm::enumerate(y)) {
    std::optional<T> combined;
    forEachElement(op, indexOf(static_cast<int64_t>(p), op.getType().getShape()), operand,
                   [&](int64_t i) {
                     if (!combined)
                       combined = x[i];
                     else if (!isMax)
                       *combined += x[i];
                     else if (x[i] > *combined || x[i] != x[i])
                       combined = x[i];
                   });
    result = combined.value_or(T(0));
  }
}

LogicalResult pool(PoolOp op, Frame& frame) {
  const Tensor& operand = frame.get(op.getOperand());
  Tensor result(cast<ShapedType>(op.getType()));
  if (result.isFloat())
    combineWindows(op, operand.shape(), operand.floats(), result.mutableFloats());
  else
    combineWindows(op, operand.shape(), operand.integers(), result.mutableIntegers());
  frame.set(op, std::move(result));
  return success();
}

LogicalResult maxPoolGrad(MaxPoolGradOp op, Frame& frame) {
  const Tensor &operand = frame.get(op.getOperand()), &dresult = frame.get(op.getDresult());
  ArrayRef<double> x = operand.floats(), dy = dresult.floats();
  Tensor result(cast<ShapedType>(op.getType()));
  MutableArrayRef<double> dx = result.mutableFloats();
  for (auto [p, gradient] : llvm::enumerate(dy)) {
    std::optional<int64_t> first;
    forEachElement(op, indexOf(static_cast<int64_t>(p), dresult.shape()), operand.shape(),
                   [&](int64_t i) {
                     if (!first || x[i] > x[*first] || (x[i] != x[i] && x[*first] == x[*first]))
                       first = i;
                   });
    dx[*first] += gradient;
  }
  frame.set(op, std::move(result));
  return success();
}

} // namespace

void attachPool(MLIRContext* context) {
  attach<PoolOp, pool>(context);
  attach<MaxPoolGradOp, maxPoolGrad>(context);
}

} // namespace titan::interpreter
