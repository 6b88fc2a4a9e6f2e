// Meaning of the ops of dist on tensors: what this rank gets from those that it meets.
#include "compiler/Interpreter/Models.h"
#include "compiler/Interpreter/Ranks.h"

#include "dialects/Dist/Dist.h"

using namespace mlir;

namespace titan::interpreter {

namespace {

Tensors valuesOf(ValueRange values, Frame& frame) {
  return llvm::map_to_vector(values, [&](Value value) { return frame.get(value); });
}

LogicalResult setResults(Operation* op, FailureOr<Tensors> results, Frame& frame) {
  if (failed(results))
    return failure();
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), *results))
    frame.setExact(result, tensor);
  return success();
}

LogicalResult coordinate(dist::CoordinateOp op, Frame& frame) {
  frame.setExact(op, Tensor::scalar(op.getType(), frame.rank()->coordinateOn(op.getAxis())));
  return success();
}

LogicalResult takeShard(dist::TakeShardOp op, Frame& frame) {
  frame.setExact(op, frame.rank()->shardOf(frame.get(op.getOperand()), op.getAxes(), op.getDim()));
  return success();
}

template <typename OpTy> LogicalResult collective(OpTy op, Frame& frame) {
  return setResults(
      op, frame.rank()->exchange(op, valuesOf(op.getOperands(), frame), frame.engine()), frame);
}

LogicalResult start(dist::StartOp op, Frame& frame) {
  // Who reads a result before the wait sees it.
  for (Value out : op.getOuts())
    frame.setExact(out, Tensor::unspecified(cast<ShapedType>(out.getType())));
  return frame.rank()->start(op, valuesOf(op.getIns(), frame));
}

LogicalResult wait(dist::WaitOp op, Frame& frame) {
  return setResults(op, frame.rank()->wait(op, frame.engine()), frame);
}

/// On tensors, on one of several ranks. Runs `function` or says so.
template <typename OpTy, auto function> void attachOnRanks(MLIRContext* context) {
  attach<OpTy, [](OpTy op, Frame& frame) -> LogicalResult {
    if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<MemRefType>))
      return op.emitOpError("on buffers has no meaning in the interpreter");
    if (!frame.rank())
      return op.emitOpError("has no meaning on one rank alone");
    return function(op, frame);
  }>(context);
}

} // namespace

void attachDist(MLIRContext* context) {
  attachOnRanks<dist::CoordinateOp, coordinate>(context);
  attachOnRanks<dist::TakeShardOp, takeShard>(context);
  attachOnRanks<dist::AllGatherOp, collective<dist::AllGatherOp>>(context);
  attachOnRanks<dist::ReduceScatterOp, collective<dist::ReduceScatterOp>>(context);
  attachOnRanks<dist::AllReduceOp, collective<dist::AllReduceOp>>(context);
  attachOnRanks<dist::StartOp, start>(context);
  attachOnRanks<dist::WaitOp, wait>(context);
}

} // namespace titan::interpreter
