#include "compiler/Shard/GradientPlacements.h"

#include "compiler/Shard/Strategies.h"
#include "compiler/Support/TaggedFunction.h"
#include "dialects/Accum/Accum.h"

using namespace mlir;

namespace titan {

/// The state that an argument of the function brings, from itself or from a part of it; null if
/// `value` is something else.
static ir::StateOp stateOf(Value value) {
  for (Operation* op = value.getDefiningOp(); op && isa<dist::TakeShardOp, ir::PadOp>(op);
       op = value.getDefiningOp())
    value = op->getOperand(0);
  auto argument = dyn_cast<BlockArgument>(value);
  auto function =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  return function ? TaggedFunction(function).argumentState(argument.getArgNumber()) : ir::StateOp();
}

/// The axes of `mesh`, divided by the strategy of `recipe`.
static MeshRecipe onMesh(MeshRecipe recipe, dist::MeshAttr mesh) {
  recipe.axes.clear();
  for (auto [axis, ranks] : llvm::zip_equal(mesh.getAxes(), mesh.getExtents()))
    recipe.axes.push_back({axis.str(), ranks});
  return recipe;
}

GradientPlacements::GradientPlacements(func::FuncOp function, const MeshRecipe& given,
                                       dist::MeshAttr mesh)
    : axes_(mesh.getAxes().size()) {
  const MeshRecipe recipe = onMesh(given, mesh);
  function.walk([&](ir::UpdateOpInterface update) {
    ir::StateOp parameter = stateOf(update.getUpdatedParameter());
    if (!parameter)
      return;
    const ValuePlacement placement = placementOfGradient(parameter, recipe);
    if (llvm::any_of(placement, [](AxisPlacement on) { return on.isShard(); }))
      mark(update.getAppliedGradient(), placement);
  });
}

ValuePlacement GradientPlacements::operator[](Value value) const {
  auto found = placements_.find(value);
  return found == placements_.end() ? ValuePlacement(axes_) : found->second;
}

void GradientPlacements::mark(Value value, const ValuePlacement& placement) {
  if (!placements_.try_emplace(value, placement).second)
    return;
  Operation* op = value.getDefiningOp();
  if (auto loop = dyn_cast_if_present<accum::LoopOp>(op)) {
    const unsigned number = cast<OpResult>(value).getResultNumber();
    if (number >= loop.getSums().size())
      return;
    if (loop.getOrder() == accum::Order::Running) {
      mark(loop.getInits()[number], placement);
      mark(loop.getAccumulators()[number], placement);
    }
    mark(loop.getYieldedSums()[number], placement);
  } else if (auto transpose = dyn_cast_if_present<ir::TransposeOp>(op)) {
    ValuePlacement before = placement;
    for (AxisPlacement& on : before)
      if (on.isShard())
        on = AxisPlacement::shard(transpose.getPermutation()[on.dim]);
    mark(transpose.getOperand(), before);
  } else if (op && (isa<ir::AddOp, ir::ConvertOp, ir::PadOp>(op) || dist::isWholeCollective(op))) {
    // What is added to the sum is summed like it; of a collective the operand in the same place.
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (!dist::isWholeCollective(op) || i == cast<OpResult>(value).getResultNumber())
        mark(operand, placement);
  }
}

} // namespace titan
