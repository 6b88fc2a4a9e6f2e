// titan-shard-nest-loops: where each sum over ranks may stand.
#include "compiler/Shard/AutoSync.h"
#include "compiler/Shard/Passes.h"
#include "compiler/Support/LoopChain.h"
#include "compiler/Support/RecipeAttribute.h"
#include "dialects/Titan/TensorBuilder.h"
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

/// Makes what the loop around `inner` sums a sum of the sums of `inner`, each of which begins at
/// zero.
void sumFromZero(accum::LoopOp inner, OpBuilder& outside) {
  accum::LoopOp outer = inner.getOuter();
  Operation* yield = outer.getBlock().getTerminator();
  OpBuilder builder(yield);
  const ir::TensorBuilder zeros(outside, outer.getLoc());
  for (unsigned i = 0; i < inner.getSums().size(); ++i) {
    inner.getInitsMutable()[i].set(zeros.splat(inner.getResultTypes()[i], 0));
    // The addition belongs to whatever the terms belong to.
    Operation* source = inner.getYieldedSums()[i].getDefiningOp();
    const auto t =
        source ? ir::TensorBuilder(builder, source) : ir::TensorBuilder(builder, inner.getLoc());
    yield->setOperand(i, t.add(outer.getAccumulators()[i], inner.getSums()[i]));
  }
}

LogicalResult nest(func::FuncOp step, ArrayRef<MicrobatchLoop> loops) {
  SmallVector<accum::LoopOp> found;
  step.walk([&](accum::LoopOp loop) { found.push_back(loop); });
  if (found.empty() || loops.size() == 1)
    return success();
  accum::LoopOp inner = found.front();
  int64_t count = 1;
  for (const MicrobatchLoop& loop : loops)
    count *= loop.count;
  if (found.size() > 1 || static_cast<int64_t>(inner.getCount()) != count ||
      inner.getOrder() != accum::Order::Running)
    return found.back().emitError("has to be the one loop over all ")
           << count << " microbatches, in order, for ranks to sum more often than once a step";
  OpBuilder outside = OpBuilder::atBlockBegin(&step.getBody().front());
  for (const MicrobatchLoop& loop : loops.drop_back()) {
    inner = splitLoop(inner, count /= loop.count);
    sumFromZero(inner, outside);
  }
  return success();
}

struct NestLoops : impl::NestLoopsBase<NestLoops> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Recipe> recipe = getRecipe(module);
    if (failed(recipe))
      return signalPassFailure();
    if (rankCount(recipe->mesh.axes) == 1)
      return;
    resolveSync(module, *recipe);
    auto step = module.lookupSymbol<func::FuncOp>(ir::function::step);
    if (step && failed(nest(step, microbatchLoops(*recipe))))
      signalPassFailure();
  }
};

} // namespace

} // namespace titan
