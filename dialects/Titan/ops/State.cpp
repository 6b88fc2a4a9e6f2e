#include "dialects/Titan/ops/OpSupport.h"
#include "dialects/Titan/ops/StateSources.h"

using namespace mlir;

namespace titan::ir {

LogicalResult StateOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape())
    return emitOpError("(C1) type ") << getType() << " is not a tensor of static shape";
  if (getTrainable() && getKind() != StateKind::Param)
    return emitOpError("(C2) only a param is trainable, this is a ")
           << stringifyStateKind(getKind());
  if (getKind() == StateKind::Counter &&
      (type.getRank() != 0 || !type.getElementType().isInteger(64)))
    return emitOpError("(C3) a counter is tensor<i64>, not ") << type;
  if (!isa<FileInitAttr, RuleInitAttr>(getInit()))
    return emitOpError("init is neither #titan.init_file nor #titan.init_rule");
  if (failed(verifySources(*this)))
    return failure();
  if (std::optional<PlacementAttr> placement = getPlacement())
    for (int64_t dim : placement->getDims())
      if (dim < 0 || dim >= type.getRank())
        return emitOpError("(C6) ") << *placement << " cuts dimension " << dim << " of " << type;
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

ShardingRule BarrierOp::getShardingRule() {
  // Each value passes by itself: factors are not shared between them.
  ShardingRule rule = emptyRule(*this);
  for (auto [i, input] : llvm::enumerate(getInputs()))
    for (auto [d, extent] : llvm::enumerate(tensorType(input).getShape())) {
      int64_t factor = rule.addFactor(extent, FactorKind::Parallel);
      rule.operands[i][d] = rule.results[i][d] = {factor};
    }
  return rule;
}

ShardingRule ConstantOp::getShardingRule() {
  // A splat has any part of itself; other constants are needed whole.
  ShardingRule rule = emptyRule(*this);
  FactorKind kind = isa<SplatElementsAttr>(getValue()) ? FactorKind::Parallel : FactorKind::Whole;
  for (auto [d, extent] : llvm::enumerate(tensorType(getResult()).getShape()))
    rule.results[0][d] = {rule.addFactor(extent, kind)};
  return rule;
}

} // namespace titan::ir
