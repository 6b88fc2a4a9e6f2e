#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

LogicalResult SoftmaxOp::verify() {
  return verifyDim(*this, getDim(), tensorType(getOperand()).getRank());
}

LogicalResult LogSoftmaxOp::verify() {
  return verifyDim(*this, getDim(), tensorType(getOperand()).getRank());
}

LogicalResult LayerNormOp::verify() {
  RankedTensorType type = tensorType(getOperand());
  int64_t axis = getAxis();
  if (axis < 0 || axis >= type.getRank())
    return emitOpError("(C1) axis ") << axis << " is outside the rank " << type.getRank();
  for (Value affine : {getScale(), getBias()})
    if (affine && tensorType(affine).getShape() != type.getShape().drop_front(getAxis()))
      return emitOpError("(C2) scale or bias ")
             << tensorType(affine) << " does not have the shape of dimensions " << getAxis()
             << " on of " << type;
  if (tensorType(getResult()) != type ||
      tensorType(getMean()).getShape() != type.getShape().take_front(getAxis()) ||
      tensorType(getMean()) != tensorType(getRstd()) ||
      tensorType(getMean()).getElementType() != accumulationType(type.getElementType()))
    return emitOpError("(C3) results do not match ") << type << " normalised from " << getAxis();
  return success();
}

LogicalResult RmsNormOp::verify() {
  RankedTensorType type = tensorType(getOperand());
  int64_t axis = getAxis();
  if (axis < 0 || axis >= type.getRank())
    return emitOpError("(C1) axis ") << axis << " is outside the rank " << type.getRank();
  if (getScale() && tensorType(getScale()).getShape() != type.getShape().drop_front(axis))
    return emitOpError("(C2) scale ")
           << tensorType(getScale()) << " does not have the shape of dimensions " << axis
           << " on of " << type;
  if (tensorType(getResult()) != type ||
      tensorType(getRstd()).getShape() != type.getShape().take_front(axis) ||
      tensorType(getRstd()).getElementType() != accumulationType(type.getElementType()))
    return emitOpError("(C3) results do not match ") << type << " normalised from " << axis;
  return success();
}

ShardingRule SoftmaxOp::getShardingRule() { return elementwiseRule(*this, {(int64_t)getDim()}); }
ShardingRule LogSoftmaxOp::getShardingRule() { return elementwiseRule(*this, {(int64_t)getDim()}); }

/// Rows are parallel, what is normalized stays whole. Operands behind the first lie along the
/// normalized dimensions, results behind the first along the rows.
static ShardingRule normRule(Operation* op, int64_t axis) {
  ShardingRule rule = emptyRule(op);
  for (auto [i, extent] : llvm::enumerate(tensorType(op->getOperand(0)).getShape())) {
    int64_t d = i;
    bool isRow = d < axis;
    int64_t factor = rule.addFactor(extent, isRow ? FactorKind::Parallel : FactorKind::Whole);
    rule.operands[0][d] = rule.results[0][d] = {factor};
    for (ShardingRule::Dims& dims :
         MutableArrayRef<ShardingRule::Dims>(isRow ? rule.results : rule.operands).drop_front())
      dims[isRow ? d : d - axis] = {factor};
  }
  return rule;
}

ShardingRule LayerNormOp::getShardingRule() { return normRule(*this, getAxis()); }
ShardingRule RmsNormOp::getShardingRule() { return normRule(*this, getAxis()); }

} // namespace titan::ir
