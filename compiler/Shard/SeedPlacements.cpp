#include "compiler/Shard/Passes.h"
#include "compiler/Shard/Seeds.h"
#include "compiler/Support/RecipeAttribute.h"
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

/// Under ddp each rank sums all of its microbatches before ranks sum: there is nothing to choose.
void resolveSync(ModuleOp module, Recipe& recipe) {
  if (recipe.mesh.sync != "auto")
    return;
  recipe.mesh.sync = "deferred";
  setRecipe(module, recipe);
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
    resolveSync(module, *recipe);
    // The one strategy, ddp, cuts no state.
    auto function = module.lookupSymbol<func::FuncOp>(ir::function::step);
    if (!function)
      return;
    TaggedFunction step(function);
    addStop(step);
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (dist::PlacementAttr seed = seedOf(step, i, mesh); !seed.getAxes().empty())
        function.setArgAttr(i, dist::placementTag, seed);
  }
};

} // namespace

} // namespace titan
