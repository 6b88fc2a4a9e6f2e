#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

LogicalResult SoftmaxOp::verify() {
  return verifyDim(*this, getDim(), tensorType(getOperand()).getRank());
}

LogicalResult LogSoftmaxOp::verify() {
  return verifyDim(*this, getDim(), tensorType(getOperand()).getRank());
}

SmallVector<int64_t> LayerNormOp::getKeptDims() {
  return llvm::to_vector(
      llvm::make_filter_range(llvm::seq<int64_t>(0, tensorType(getOperand()).getRank()),
                              [&](int64_t d) { return !llvm::is_contained(getDims(), d); }));
}

ArrayRef<int64_t> LayerNormOp::getDimsApart() {
  ArrayRef<int64_t> apart = getDims();
  for (int64_t last = tensorType(getOperand()).getRank() - 1;
       !apart.empty() && apart.back() == last; --last)
    apart = apart.drop_back();
  return apart;
}

LogicalResult LayerNormOp::verify() {
  RankedTensorType type = tensorType(getOperand());
  ArrayRef<int64_t> dims = getDims();
  if (dims.empty() || !isIncreasingWithin(dims, type.getRank()))
    return emitOpError("(C1) dims [")
           << dims << "] are none, or not increasing within the rank " << type.getRank();
  const SmallVector<int64_t> normalised =
      llvm::map_to_vector(dims, [&](int64_t d) { return type.getDimSize(d); });
  for (Value affine : {getScale(), getBias()})
    if (affine && tensorType(affine).getShape() != ArrayRef(normalised))
      return emitOpError("(C2) scale or bias ")
             << tensorType(affine) << " for dimensions [" << dims << "] of " << type;
  if (tensorType(getResult()) != type ||
      tensorType(getMean()).getShape() != ArrayRef(withoutDims(type.getShape(), dims)) ||
      tensorType(getMean()) != tensorType(getRstd()) ||
      tensorType(getMean()).getElementType() != accumulationType(type.getElementType()))
    return emitOpError("(C3) results do not match ") << type << " normalised over [" << dims << "]";
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

/// Rows are parallel, what is normalized is not split. Operands behind the first lie along the
/// normalized dimensions, results behind the first along the rows.
static ShardingRule normRule(Operation* op, ArrayRef<int64_t> normalized, FactorKind kind) {
  ShardingRule rule = emptyRule(op);
  int64_t row = 0, column = 0;
  for (auto [d, extent] : llvm::enumerate(tensorType(op->getOperand(0)).getShape())) {
    bool isRow = !llvm::is_contained(normalized, static_cast<int64_t>(d));
    int64_t factor = rule.addFactor(extent, isRow ? FactorKind::Parallel : kind);
    rule.operands[0][d] = rule.results[0][d] = {factor};
    int64_t place = isRow ? row++ : column++;
    for (ShardingRule::Dims& dims :
         MutableArrayRef<ShardingRule::Dims>(isRow ? rule.results : rule.operands).drop_front())
      dims[place] = {factor};
  }
  return rule;
}

/// A norm without scale and bias is that of any extent: of a batch, of an image. Those of a feature
/// have its extent.
ShardingRule LayerNormOp::getShardingRule() {
  const bool isFeature = getScale() || getBias();
  return normRule(*this, getDims(), isFeature ? FactorKind::Whole : FactorKind::Joint);
}

ShardingRule RmsNormOp::getShardingRule() {
  const auto rank = tensorType(getOperand()).getRank();
  return normRule(*this, llvm::to_vector(llvm::seq<int64_t>(getAxis(), rank)), FactorKind::Whole);
}

} // namespace titan::ir
