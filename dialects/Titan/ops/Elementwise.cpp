#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

/// Is `attribute` a splat of `value`?
static bool isSplat(Attribute attribute, double value) {
  auto splat = dyn_cast_if_present<SplatElementsAttr>(attribute);
  if (!splat)
    return false;
  Type element = splat.getElementType();
  if (isa<FloatType>(element))
    return splat.getSplatValue<APFloat>().convertToDouble() == value;
  if (element.isInteger(1))
    return splat.getSplatValue<bool>() == (value != 0);
  return splat.getSplatValue<APInt>().getSExtValue() == static_cast<int64_t>(value);
}

OpFoldResult NegOp::fold(FoldAdaptor) {
  if (auto inner = getOperand().getDefiningOp<NegOp>())
    return inner.getOperand();
  return {};
}

OpFoldResult NotOp::fold(FoldAdaptor) {
  if (auto inner = getOperand().getDefiningOp<NotOp>())
    return inner.getOperand();
  return {};
}

OpFoldResult ReluOp::fold(FoldAdaptor) {
  if (getOperand().getDefiningOp<ReluOp>())
    return getOperand();
  return {};
}

SmallVector<Value> DetachOp::buildEvaluation(OpBuilder&) { return {getOperand()}; }

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  if (!isa<FloatType>(tensorType(getResult()).getElementType()) && isSplat(adaptor.getRhs(), 0))
    return getLhs();
  return {};
}

OpFoldResult SubOp::fold(FoldAdaptor adaptor) {
  // x - (+0) is x for every x, -0 included.
  if (isSplat(adaptor.getRhs(), 0)) {
    auto splat = cast<SplatElementsAttr>(adaptor.getRhs());
    if (!isa<FloatType>(splat.getElementType()) || !splat.getSplatValue<APFloat>().isNegative())
      return getLhs();
  }
  return {};
}

OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (isSplat(adaptor.getRhs(), 1))
    return getLhs();
  if (isSplat(adaptor.getLhs(), 1))
    return getRhs();
  return {};
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  if (isSplat(adaptor.getRhs(), 1))
    return getLhs();
  return {};
}

OpFoldResult AndOp::fold(FoldAdaptor adaptor) {
  if (isSplat(adaptor.getRhs(), 1) || getLhs() == getRhs())
    return getLhs();
  if (isSplat(adaptor.getLhs(), 1))
    return getRhs();
  return {};
}

OpFoldResult OrOp::fold(FoldAdaptor adaptor) {
  if (isSplat(adaptor.getRhs(), 0) || getLhs() == getRhs())
    return getLhs();
  if (isSplat(adaptor.getLhs(), 0))
    return getRhs();
  return {};
}

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getOnTrue() == getOnFalse() || isSplat(adaptor.getCondition(), 1))
    return getOnTrue();
  if (isSplat(adaptor.getCondition(), 0))
    return getOnFalse();
  return {};
}

OpFoldResult ConvertOp::fold(FoldAdaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  return {};
}

#define TITAN_ELEMENTWISE_RULE(OP)                                                                 \
  ShardingRule OP::getShardingRule() { return elementwiseRule(*this); }
TITAN_ELEMENTWISE_RULE(NegOp)
TITAN_ELEMENTWISE_RULE(AbsOp)
TITAN_ELEMENTWISE_RULE(SignOp)
TITAN_ELEMENTWISE_RULE(FloorOp)
TITAN_ELEMENTWISE_RULE(CeilOp)
TITAN_ELEMENTWISE_RULE(RoundOp)
TITAN_ELEMENTWISE_RULE(ExpOp)
TITAN_ELEMENTWISE_RULE(Expm1Op)
TITAN_ELEMENTWISE_RULE(LogOp)
TITAN_ELEMENTWISE_RULE(Log1pOp)
TITAN_ELEMENTWISE_RULE(SqrtOp)
TITAN_ELEMENTWISE_RULE(RsqrtOp)
TITAN_ELEMENTWISE_RULE(SinOp)
TITAN_ELEMENTWISE_RULE(CosOp)
TITAN_ELEMENTWISE_RULE(AtanOp)
TITAN_ELEMENTWISE_RULE(TanhOp)
TITAN_ELEMENTWISE_RULE(SigmoidOp)
TITAN_ELEMENTWISE_RULE(ErfOp)
TITAN_ELEMENTWISE_RULE(ReluOp)
TITAN_ELEMENTWISE_RULE(SiluOp)
TITAN_ELEMENTWISE_RULE(SoftplusOp)
TITAN_ELEMENTWISE_RULE(NotOp)
TITAN_ELEMENTWISE_RULE(DetachOp)
TITAN_ELEMENTWISE_RULE(GeluOp)
TITAN_ELEMENTWISE_RULE(LeakyReluOp)
TITAN_ELEMENTWISE_RULE(EluOp)
TITAN_ELEMENTWISE_RULE(HardSigmoidOp)
TITAN_ELEMENTWISE_RULE(IsFiniteOp)
TITAN_ELEMENTWISE_RULE(ConvertOp)
TITAN_ELEMENTWISE_RULE(AddOp)
TITAN_ELEMENTWISE_RULE(SubOp)
TITAN_ELEMENTWISE_RULE(MulOp)
TITAN_ELEMENTWISE_RULE(DivOp)
TITAN_ELEMENTWISE_RULE(MaxOp)
TITAN_ELEMENTWISE_RULE(MinOp)
TITAN_ELEMENTWISE_RULE(PowOp)
TITAN_ELEMENTWISE_RULE(RemOp)
TITAN_ELEMENTWISE_RULE(AndOp)
TITAN_ELEMENTWISE_RULE(OrOp)
TITAN_ELEMENTWISE_RULE(CompareOp)
TITAN_ELEMENTWISE_RULE(SelectOp)
TITAN_ELEMENTWISE_RULE(BceWithLogitsOp)
#undef TITAN_ELEMENTWISE_RULE

} // namespace titan::ir
