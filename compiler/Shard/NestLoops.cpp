// titan-shard-nest-loops: where each sum over ranks may stand.
#include "compiler/Shard/AutoSync.h"
#include "compiler/Shard/Passes.h"
#include "compiler/Support/LoopChain.h"
#include "compiler/Support/RecipeAttribute.h"
#include "runtime/program/Collective.h"
#include "runtime/program/Microbatches.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_NESTLOOPS
#include "compiler/Shard/Passes.h.inc"

namespace {

/// `auto` becomes what it means.
void resolveSync(ModuleOp module, Recipe& recipe) {
  if (recipe.mesh.sync.all != "auto")
    return;
  recipe.mesh.sync = autoSync(recipe.mesh);
  setRecipe(module, recipe);
}

/// The loops of `step` become those of `loops`. A tree stays one where ranks divide it; what a rank
/// adds by itself is a running sum of two, level by level.
LogicalResult nest(func::FuncOp step, ArrayRef<MicrobatchLoop> loops, accum::Order order) {
  SmallVector<accum::LoopOp> found;
  step.walk([&](accum::LoopOp loop) { found.push_back(loop); });
  const bool isTree = order == accum::Order::Tree;
  if (found.empty() || (loops.size() == 1 && !isTree))
    return success();
  int64_t count = 1;
  for (const MicrobatchLoop& loop : loops)
    count *= loop.count;
  if (found.size() > 1 || static_cast<int64_t>(found.front().getCount()) != count ||
      found.front().getOrder() != order)
    return found.back().emitError("has to be the one loop over all ")
           << count << " microbatches, "
           << (isTree ? "a tree, by mesh.reduce"
                      : "in order, for ranks to sum more often than once a step");
  const SmallVector<accum::LoopOp> nested = nestLoop(
      found.front(), llvm::map_to_vector(loops, [](const auto& loop) { return loop.count; }));
  OpBuilder outside = OpBuilder::atBlockBegin(&step.getBody().front());
  for (size_t i = nested.size(); i-- > 0;) {
    if (isTree && loops[i].axes.empty())
      makeRunning(nested[i], outside);
    else if (!isTree && i > 0)
      sumFromZero(nested[i], outside);
  }
  return success();
}

struct NestLoops : impl::NestLoopsBase<NestLoops> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Recipe> recipe = getRecipe(module);
    if (failed(recipe))
      return signalPassFailure();
    const bool isTree = recipe->mesh.isTree(), isOneRank = rankCount(recipe->mesh.axes) == 1;
    if (isOneRank && !isTree)
      return;
    if (!isOneRank)
      resolveSync(module, *recipe);
    auto step = module.lookupSymbol<func::FuncOp>(ir::function::step);
    if (step && failed(nest(step, microbatchLoops(*recipe),
                            isTree ? accum::Order::Tree : accum::Order::Running)))
      signalPassFailure();
  }
};

} // namespace

} // namespace titan
