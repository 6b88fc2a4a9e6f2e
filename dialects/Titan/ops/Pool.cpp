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
    const Windows windows = op.getWindows(d);
    const int64_t padded = windows.low + windows.extent + op.getHigh()[d];
    if (windows.covered() > padded)
      return op.emitOpError("(C2) a window of ")
             << windows.covered() << " is larger than the padded extent " << padded
             << " of dimension " << d;
    const int64_t fitting = (padded - windows.covered()) / windows.stride + 1;
    if (fitting != windows.positions)
      return op.emitOpError("(C2) dimension ")
             << d << " has " << fitting << " windows, not " << windows.positions;
  }
  return success();
}

/// (C3)
template <typename Op> LogicalResult verifyWindowsAreFilled(Op op) {
  for (size_t d = 0; d < op.getWindow().size(); ++d)
    if (auto position = op.getWindows(d).firstInPadding())
      return op.emitOpError("(C3) window ")
             << *position << " of dimension " << d << " lies in the padding alone";
  return success();
}

/// Along dimension `d`, over `operand`, one for each element of `positions`.
template <typename Op>
Windows windowsOf(Op op, size_t d, RankedTensorType operand, RankedTensorType positions) {
  return {.taps = op.getWindow()[d],
          .stride = op.getStrides()[d],
          .low = op.getLow()[d],
          .dilation = op.getDilations()[d],
          .extent = operand.getDimSize(d),
          .positions = positions.getDimSize(d)};
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

Windows PoolOp::getWindows(size_t dim) {
  return windowsOf(*this, dim, tensorType(getOperand()), getType());
}

Windows MaxPoolGradOp::getWindows(size_t dim) {
  return windowsOf(*this, dim, tensorType(getOperand()), tensorType(getDresult()));
}

LogicalResult PoolOp::verify() {
  RankedTensorType operand = tensorType(getOperand()), result = tensorType(getResult());
  if (getKind() != ReduceKind::Sum && getKind() != ReduceKind::Max)
    return emitOpError("(C3) ") << stringifyReduceKind(getKind()) << " is neither sum nor max";
  if (failed(verifyWindows(*this, operand, result)))
    return failure();
  return getKind() == ReduceKind::Max ? verifyWindowsAreFilled(*this) : success();
}

LogicalResult MaxPoolGradOp::verify() {
  RankedTensorType operand = tensorType(getOperand()), dresult = tensorType(getDresult());
  if (getType() != operand || dresult.getElementType() != operand.getElementType())
    return emitOpError("(C3) the adjoint of ")
           << operand << " is not " << getType() << ", of " << dresult.getElementType();
  if (failed(verifyWindows(*this, operand, dresult)))
    return failure();
  return verifyWindowsAreFilled(*this);
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
