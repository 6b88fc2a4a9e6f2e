#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

LogicalResult SgdOp::verify() {
  RankedTensorType type = tensorType(getParam());
  if (!getMomentumBuffer() != !getNewMomentumBuffer())
    return emitOpError("(C1) momentum buffer operand and result come together");
  if (tensorType(getGradient()) != type || tensorType(getNewParam()) != type ||
      (getMomentumBuffer() &&
       (tensorType(getMomentumBuffer()) != type || tensorType(getNewMomentumBuffer()) != type)))
    return emitOpError("(C1) all tensors have the parameter's type ") << type;
  return success();
}

ShardingRule SgdOp::getShardingRule() { return elementwiseRule(*this); }
ShardingRule AdamOp::getShardingRule() { return elementwiseRule(*this); }

} // namespace titan::ir
