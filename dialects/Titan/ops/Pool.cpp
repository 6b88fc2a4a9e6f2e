#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

namespace {

/// (C1) and (C2) of windows over `operand`, one for each element of `positions`.
template <typename Op>
LogicalResult verifyWindows(Op op, RankedTensorType operand, RankedTensorType positions) {
  const auto rank = static_cast<size_t>(operand.getRank());
  for (ArrayRef<int64_t> list :
       {op.getWindow(), op.getStrides(), op.getLow(), op.getHigh(), op.getDilations()})
    if (list.size() != rank)
      return op.emitOpError("(C1) has ") << rank << " dimensions, and a list of " << list.size();
  if (llvm::any_of(llvm::concat<const int64_t>(op.getWindow(), op.getStrides(), op.getDilations()),
                   [](int64_t x) { return x < 1; }) ||
      llvm::any_of(llvm::concat<const int64_t>(op.getLow(), op.getHigh()),
                   [](int64_t x) { return x < 0; }))
    return op.emitOpError("(C1) windows [")
           << op.getWindow() << "], strides [" << op.getStrides() << "] and dilations ["
           << op.getDilations() << "] are positive, padding [" << op.getLow() << "] and ["
           << op.getHigh() << "] is not negative";
  if (positions.getRank() != operand.getRank())
    return op.emitOpError("(C2) ") << operand << " and " << positions << " differ in rank";
  for (size_t d = 0; d < rank; ++d) {
    const int64_t covered = op.getDilations()[d] * (op.getWindow()[d] - 1) + 1,
                  padded = op.getLow()[d] + operand.getDimSize(d) + op.getHigh()[d];
    if (covered > padded)
      return op.emitOpError("(C2) a window of ")
             << covered << " is larger than the padded extent " << padded << " of dimension " << d;
    const int64_t fitting = (padded - covered) / op.getStrides()[d] + 1;
    if (fitting != positions.getDimSize(d))
      return op.emitOpError("(C2) dimension ")
             << d << " has " << fitting << " windows, not " << positions.getDimSize(d);
  }
  return success();
}

/// (C3): the first element of `operand` that a window reads is in front of the end, in each.
template <typename Op>
LogicalResult verifyWindowsAreFilled(Op op, RankedTensorType operand, RankedTensorType positions) {
  for (int64_t d = 0; d < operand.getRank(); ++d)
    for (int64_t p = 0; p < positions.getDimSize(d); ++p) {
      const int64_t start = p * op.getStrides()[d] - op.getLow()[d], step = op.getDilations()[d];
      const int64_t tap = start < 0 ? llvm::divideCeil(-start, step) : 0;
      if (tap >= op.getWindow()[d] || start + tap * step >= operand.getDimSize(d))
        return op.emitOpError("(C3) window ")
               << p << " of dimension " << d << " lies in the padding alone";
    }
  return success();
}

/// Dimensions without a window are parallel; along the others a piece would read its neighbours.
template <typename Op>
void addWindowFactors(Op op, ShardingRule& rule, ArrayRef<ShardingRule::Dims*> ofOperand,
                      ShardingRule::Dims& ofPositions, RankedTensorType operand,
                      RankedTensorType positions) {
  for (int64_t d = 0; d < operand.getRank(); ++d) {
    const bool isFree = op.getWindow()[d] == 1 && op.getStrides()[d] == 1 && op.getLow()[d] == 0 &&
                        op.getHigh()[d] == 0;
    const int64_t read =
        rule.addFactor(operand.getDimSize(d), isFree ? FactorKind::Parallel : FactorKind::Whole);
    const int64_t given =
        isFree ? read : rule.addFactor(positions.getDimSize(d), FactorKind::Whole);
    for (ShardingRule::Dims* dims : ofOperand)
      (*dims)[d] = {read};
    ofPositions[d] = {given};
  }
}

} // namespace

LogicalResult PoolOp::verify() {
  RankedTensorType operand = tensorType(getOperand()), result = tensorType(getResult());
  if (getKind() != ReduceKind::Sum && getKind() != ReduceKind::Max)
    return emitOpError("(C3) ") << stringifyReduceKind(getKind()) << " is neither sum nor max";
  if (failed(verifyWindows(*this, operand, result)))
    return failure();
  return getKind() == ReduceKind::Max ? verifyWindowsAreFilled(*this, operand, result) : success();
}

LogicalResult MaxPoolGradOp::verify() {
  RankedTensorType operand = tensorType(getOperand()), dresult = tensorType(getDresult());
  if (getType() != operand || dresult.getElementType() != operand.getElementType())
    return emitOpError("(C3) the adjoint of ")
           << operand << " is not " << getType() << ", of " << dresult.getElementType();
  if (failed(verifyWindows(*this, operand, dresult)))
    return failure();
  return verifyWindowsAreFilled(*this, operand, dresult);
}

ShardingRule PoolOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  addWindowFactors(*this, rule, {&rule.operands[0]}, rule.results[0], tensorType(getOperand()),
                   tensorType(getResult()));
  return rule;
}

ShardingRule MaxPoolGradOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  addWindowFactors(*this, rule, {&rule.operands[0], &rule.results[0]}, rule.operands[1],
                   tensorType(getOperand()), tensorType(getDresult()));
  return rule;
}

} // namespace titan::ir
