#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

LogicalResult TopKOp::verify() {
  RankedTensorType operand = tensorType(getOperand()), values = tensorType(getValues());
  const int64_t last = operand.getRank() - 1;
  if (last < 0 || values.getElementType() != operand.getElementType() ||
      values.getRank() != operand.getRank() ||
      values.getShape().drop_back() != operand.getShape().drop_back() ||
      values.getDimSize(last) < 1 || values.getDimSize(last) > operand.getDimSize(last))
    return emitOpError("(C1) ") << values << " are no elements of the rows of " << operand;
  if (tensorType(getIndices()).getShape() != values.getShape())
    return emitOpError("(C2) indices ")
           << tensorType(getIndices()) << " do not have the shape of " << values;
  return success();
}

ShardingRule TopKOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  RankedTensorType operand = tensorType(getOperand()), values = tensorType(getValues());
  const int64_t last = operand.getRank() - 1;
  for (int64_t d = 0; d < last; ++d) {
    int64_t factor = rule.addFactor(operand.getDimSize(d), FactorKind::Parallel);
    rule.operands[0][d] = rule.results[0][d] = rule.results[1][d] = {factor};
  }
  rule.operands[0][last] = {rule.addFactor(operand.getDimSize(last), FactorKind::Whole)};
  int64_t chosen = rule.addFactor(values.getDimSize(last), FactorKind::Whole);
  rule.results[0][last] = rule.results[1][last] = {chosen};
  return rule;
}

} // namespace titan::ir
