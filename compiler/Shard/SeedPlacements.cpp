#include "compiler/Shard/Passes.h"
#include "compiler/Shard/Seeds.h"
#include "compiler/Shard/Strategies.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/StateNames.h"
#include "runtime/program/Collective.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_SEEDPLACEMENTS
#include "compiler/Shard/Passes.h.inc"

namespace {

dist::MeshAttr meshOf(MLIRContext* context, ArrayRef<MeshAxis> axes) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> ranks;
  for (const MeshAxis& axis : axes) {
    names.push_back(StringAttr::get(context, axis.name));
    ranks.push_back(axis.ranks);
  }
  return dist::MeshAttr::get(context, names, ranks);
}

/// A stop that one rank was asked for becomes known to all with the step's metrics.
void addStop(TaggedFunction step) {
  Builder builder(step.function().getContext());
  auto name = builder.getStringAttr(dist::stopName);
  BlockArgument stop =
      step.getArgument(RankedTensorType::get({}, builder.getI64Type()), ir::tag::control, name);
  if (!step.findResult(ir::tag::metric, name))
    step.addResult(stop, ir::tag::metric, name);
}

/// Parts are equal. An error names the state whose dimension does not divide.
LogicalResult checkDivides(ir::StateOp state, const ValuePlacement& placement,
                           ArrayRef<MeshAxis> mesh) {
  for (auto [on, axis] : llvm::zip_equal(placement, mesh))
    if (on.isShard() && state.getTensorType().getDimSize(on.dim) % axis.ranks != 0)
      return state.emitError("'") << state.getName() << "': dimension " << on.dim << " of "
                                  << state.getTensorType() << " does not divide among the "
                                  << axis.ranks << " ranks of '" << axis.name
                                  << "': parts of unequal size are not available yet";
  return success();
}

/// Each pattern of mesh.reshard is that of a parameter.
LogicalResult checkPatterns(ModuleOp module, const MeshRecipe& recipe) {
  for (const std::string& glob : recipe.kept)
    if (llvm::none_of(module.getOps<ir::StateOp>(), [&](ir::StateOp state) {
          return state.getKind() == ir::StateKind::Param && matchesName(glob, state);
        }))
      return module.emitError("mesh.reshard '") << glob << "' matches no parameter";
  return success();
}

/// Gives each state the placement of the strategy.
LogicalResult placeStates(ModuleOp module, const MeshRecipe& recipe, dist::MeshAttr mesh) {
  for (auto state : module.getOps<ir::StateOp>()) {
    const ValuePlacement placement = placementOfState(state, recipe);
    if (failed(checkDivides(state, placement, recipe.axes)))
      return failure();
    const dist::PlacementAttr cuts = toAttribute(placement, mesh);
    if (cuts.getAxes().empty())
      state.removePlacementAttr();
    else
      state.setPlacementAttr(
          ir::PlacementAttr::get(module.getContext(), cuts.getAxes(), cuts.getDims()));
  }
  return success();
}

struct SeedPlacements : impl::SeedPlacementsBase<SeedPlacements> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Recipe> recipe = getRecipe(module);
    if (failed(recipe))
      return signalPassFailure();
    if (rankCount(recipe->mesh.axes) == 1)
      return;
    dist::MeshAttr mesh = meshOf(&getContext(), recipe->mesh.axes);
    module->setAttr(dist::meshTag, mesh);
    if (failed(checkPatterns(module, recipe->mesh)) ||
        failed(placeStates(module, recipe->mesh, mesh)))
      return signalPassFailure();
    if (auto step = module.lookupSymbol<func::FuncOp>(ir::function::step))
      addStop(TaggedFunction(step));
    for (auto function : module.getOps<func::FuncOp>())
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        if (dist::PlacementAttr seed = seedOf(TaggedFunction(function), i, mesh);
            !seed.getAxes().empty())
          function.setArgAttr(i, dist::placementTag, seed);
  }
};

} // namespace

} // namespace titan
