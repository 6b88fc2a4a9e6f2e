#include "compiler/Shard/Strategies.h"

#include "compiler/Shard/CutDimension.h"
#include "compiler/Support/StateNames.h"
#include "runtime/program/Strategy.h"

using namespace mlir;

namespace titan {

namespace {

/// What of a tensor of `shape` each rank has where column `share` of the strategy's rows places it.
ValuePlacement placeBy(Share StrategyRow::* share, ArrayRef<int64_t> shape,
                       const MeshRecipe& mesh) {
  ValuePlacement placement(mesh.axes.size());
  for (auto [on, axis] : llvm::zip_equal(placement, mesh.axes)) {
    const StrategyRow* row = findStrategyRow(mesh.strategy, axis.name);
    if (!row || row->*share == Share::Whole || axis.ranks == 1)
      continue;
    if (std::optional<CutDimension> cut = cutDimension(shape, axis.ranks, mesh.isTree()))
      on = AxisPlacement::shard(cut->dim);
  }
  return placement;
}

} // namespace

ValuePlacement placementOfState(ir::StateOp state, const MeshRecipe& mesh) {
  const ArrayRef<int64_t> shape = state.getTensorType().getShape();
  switch (state.getKind()) {
  case ir::StateKind::Ema: // in the place of what it is an average of
    if (ir::StateOp averaged = averagedBy(state))
      return placementOfState(averaged, mesh);
    [[fallthrough]];
  case ir::StateKind::Param:
    return placeBy(&StrategyRow::parameters, shape, mesh);
  case ir::StateKind::Slot:
    return placeBy(&StrategyRow::slots, shape, mesh);
  case ir::StateKind::Buffer:
  case ir::StateKind::Counter:
    return ValuePlacement(mesh.axes.size());
  }
  llvm_unreachable("a kind of state");
}

ValuePlacement placementOfGradient(ir::StateOp parameter, const MeshRecipe& mesh) {
  return placeBy(&StrategyRow::gradients, parameter.getTensorType().getShape(), mesh);
}

} // namespace titan
