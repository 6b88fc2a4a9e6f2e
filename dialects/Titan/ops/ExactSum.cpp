#include "dialects/Titan/ExactSum.h"
#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

static RankedTensorType wordsType(MLIRContext* context) {
  return RankedTensorType::get(exact::words, IntegerType::get(context, 64));
}

void ExactSumOp::build(OpBuilder& builder, OperationState& state, Value operand, ArrayAttr path,
                       PhaseAttr phase) {
  build(builder, state, wordsType(builder.getContext()), operand, path, phase);
}

void ExactValueOp::build(OpBuilder& builder, OperationState& state, Value words, ArrayAttr path,
                         PhaseAttr phase) {
  build(builder, state, RankedTensorType::get({}, builder.getF32Type()), words, path, phase);
}

LogicalResult ExactSumOp::verify() {
  const int64_t elements = tensorType(getOperand()).getNumElements();
  if (elements > exact::mostElements)
    return emitOpError("(C1) adds ")
           << elements << " elements, more than " << exact::mostElements << ": words may overflow";
  if (getWords().getType() != wordsType(getContext()))
    return emitOpError("(C2) gives words of ") << wordsType(getContext());
  return success();
}

LogicalResult ExactValueOp::verify() {
  if (getWords().getType() != wordsType(getContext()))
    return emitOpError("(C1) reads words of ") << wordsType(getContext());
  return success();
}

/// Every dimension is summed. The words belong to none: each piece gives all ten.
ShardingRule ExactSumOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  for (auto [d, extent] : llvm::enumerate(tensorType(getOperand()).getShape()))
    rule.operands[0][d] = {rule.addFactor(extent, FactorKind::Reduction)};
  return rule;
}

ShardingRule ExactValueOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  rule.operands[0][0] = {rule.addFactor(exact::words, FactorKind::Whole)};
  return rule;
}

} // namespace titan::ir
