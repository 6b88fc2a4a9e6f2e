#include "dialects/Titan/ops/Random.h"
#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

LogicalResult DropoutOp::verify() {
  RankedTensorType type = tensorType(getOperand());
  if (tensorType(getResult()) != type)
    return emitOpError("the result's type is ") << type;
  return verifyRandom(*this, type.getShape());
}

ShardingRule DropoutOp::getShardingRule() {
  // Decisions are keyed by the global index, so a piece needs a window of its own: whoever splits a
  // dropout (accumulate, shard) sets it. The dimensions themselves are independent.
  return elementwiseRule(*this);
}

} // namespace titan::ir
