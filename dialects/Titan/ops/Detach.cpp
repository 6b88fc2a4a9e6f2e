#include "dialects/Titan/Detach.h"
#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

ShardingRule DetachOp::getShardingRule() { return elementwiseRule(*this); }

SmallVector<Value> DetachOp::buildEvaluation(OpBuilder&) { return {getOperand()}; }

} // namespace titan::ir

#define GET_OP_CLASSES
#include "dialects/Titan/Detach.cpp.inc"
