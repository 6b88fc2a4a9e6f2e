#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

LogicalResult ReduceOp::verify() {
  RankedTensorType type = tensorType(getOperand());
  if (!isIncreasingWithin(getDims(), type.getRank()))
    return emitOpError("(C1) dims [")
           << getDims() << "] are not increasing within the rank " << type.getRank();
  if (tensorType(getResult()) != type.clone(withoutDims(type.getShape(), getDims())))
    return emitOpError("(C2) the reduced type is ")
           << type.clone(withoutDims(type.getShape(), getDims()));
  return success();
}

LogicalResult ArgmaxOp::verify() {
  RankedTensorType type = tensorType(getOperand());
  if (failed(verifyDim(*this, getDim(), type.getRank())))
    return failure();
  if (tensorType(getResult()).getShape() != ArrayRef(withoutDims(type.getShape(), getDim())))
    return emitOpError("(C1) the result lacks dimension ") << getDim() << " only";
  return success();
}

OpFoldResult ReduceOp::fold(FoldAdaptor) {
  if (getDims().empty())
    return getOperand();
  return {};
}

/// Operand dimensions in order; those in `dims` are `reduced`, the others appear in the results.
static ShardingRule reductionRule(Operation* op, ArrayRef<int64_t> dims, FactorKind reduced) {
  ShardingRule rule = emptyRule(op);
  int64_t position = 0;
  for (auto [d, extent] : llvm::enumerate(tensorType(op->getOperand(0)).getShape())) {
    bool gone = llvm::is_contained(dims, static_cast<int64_t>(d));
    int64_t factor = rule.addFactor(extent, gone ? reduced : FactorKind::Parallel);
    rule.operands[0][d] = {factor};
    if (!gone)
      rule.results[0][position++] = {factor};
  }
  return rule;
}

ShardingRule ReduceOp::getShardingRule() {
  return reductionRule(*this, getDims(),
                       getKind() == ReduceKind::Sum ? FactorKind::Reduction : FactorKind::Whole);
}

ShardingRule ArgmaxOp::getShardingRule() {
  return reductionRule(*this, {static_cast<int64_t>(getDim())}, FactorKind::Whole);
}

} // namespace titan::ir
