// Meaning of scatter and top_k.
#include "compiler/Interpreter/Scatter.h"

#include "compiler/Interpreter/Models.h"
#include "dialects/Titan/ResultTypes.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::interpreter {

namespace {

LogicalResult scatter(ScatterOp op, Frame& frame) {
  Tensor result = frame.get(op.getOperand());
  scatterRows(op.getKind(), shapeOf(op), frame.get(op.getIndices()), frame.get(op.getUpdates()),
              result, accumulationType(result.element()), frame);
  frame.set(op, std::move(result));
  return success();
}

LogicalResult topK(TopKOp op, Frame& frame) {
  const Tensor& operand = frame.get(op.getOperand());
  Tensor values(cast<ShapedType>(op.getValues().getType())),
      indices(cast<ShapedType>(op.getIndices().getType()));
  takeFirst(operand, operand.size() / operand.shape().back(), op.getSmallest(), values, indices);
  frame.setExact(op.getValues(), std::move(values));
  frame.setExact(op.getIndices(), std::move(indices));
  return success();
}

} // namespace

void attachScatter(MLIRContext* context) {
  attach<ScatterOp, scatter>(context);
  attach<TopKOp, topK>(context);
}

} // namespace titan::interpreter
