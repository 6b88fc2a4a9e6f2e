#include "compiler/Shard/CutDimension.h"
#include "compiler/Shard/Passes.h"
#include "compiler/Shard/Seeds.h"
#include "compiler/Shard/Strategies.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/StateNames.h"
#include "mlir/IR/Remarks.h"
#include "runtime/program/Collective.h"
#include "runtime/program/Strategy.h"

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

/// Says how a parameter is cut, or that it is too small.
void remarkOnCut(ir::StateOp state, const MeshRecipe& recipe) {
  if (state.getKind() != ir::StateKind::Param)
    return;
  const RankedTensorType type = state.getTensorType();
  for (const MeshAxis& axis : recipe.axes) {
    const StrategyRow* row = findStrategyRow(recipe.strategy, axis.name);
    if (!row || row->parameters == Share::Whole || axis.ranks == 1)
      continue;
    const std::optional<CutDimension> cut =
        cutDimension(type.getShape(), axis.ranks, recipe.isTree());
    remark::passed(state.getLoc(), remark::RemarkOpts::name("seed-placements").category("shard"))
        << (cut ? remark::add(
                      "'{0}': dimension {1} of {2} is cut among {3} ranks of '{4}', {5} of {6} "
                      "elements are padding",
                      state.getName(), cut->dim, type, axis.ranks, axis.name, cut->padding,
                      type.getNumElements() + cut->padding)
                : remark::add(
                      "'{0}': {1} has fewer elements than the {2} ranks of '{3}': each has all "
                      "of it",
                      state.getName(), type, axis.ranks, axis.name));
  }
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
void placeStates(ModuleOp module, const MeshRecipe& recipe, dist::MeshAttr mesh) {
  for (auto state : module.getOps<ir::StateOp>()) {
    const ValuePlacement placement = placementOfState(state, recipe);
    remarkOnCut(state, recipe);
    const dist::PlacementAttr cuts = toAttribute(placement, mesh);
    if (cuts.getAxes().empty())
      state.removePlacementAttr();
    else
      state.setPlacementAttr(
          ir::PlacementAttr::get(module.getContext(), cuts.getAxes(), cuts.getDims()));
  }
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
    if (failed(checkPatterns(module, recipe->mesh)))
      return signalPassFailure();
    placeStates(module, recipe->mesh, mesh);
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
