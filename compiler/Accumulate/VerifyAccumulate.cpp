#include "compiler/Accumulate/Passes.h"
#include "compiler/Support/RecipeAttribute.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_VERIFYACCUMULATE
#include "compiler/Accumulate/Passes.h.inc"

namespace {

LogicalResult verifyStep(func::FuncOp step, int64_t microbatches) {
  SmallVector<accum::LoopOp> loops;
  step.walk([&](accum::LoopOp loop) { loops.push_back(loop); });
  if (loops.size() != 1)
    return step.emitError("has ") << loops.size() << " accum.loops, not one";
  if (loops.front().getOrder() != accum::Order::Running)
    return loops.front().emitError("the order of accumulation is not fixed");
  if (static_cast<int64_t>(loops.front().getCount()) != microbatches)
    return loops.front().emitError("runs ")
           << loops.front().getCount() << " microbatches, the recipe says " << microbatches;
  return success();
}

struct VerifyAccumulate : impl::VerifyAccumulateBase<VerifyAccumulate> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Recipe> recipe = getRecipe(module);
    auto step = module.lookupSymbol<func::FuncOp>(ir::function::step);
    if (failed(recipe) || !step || failed(verifyStep(step, recipe->globalMicrobatches())))
      return signalPassFailure();
    bool ok = true;
    for (ir::RandomOpInterface random : ir::randomOps(module)) {
      if (random->getParentOfType<func::FuncOp>() != step) {
        random.emitError("a random op outside of @step");
        ok = false;
      } else if (!random.isSeeded() || !random.isPlaced()) {
        random.emitError("a random op without seed, step or window");
        ok = false;
      }
    }
    if (!ok)
      signalPassFailure();
  }
};

} // namespace

} // namespace titan
