#include "compiler/Accumulate/Passes.h"
#include "compiler/Support/LoopChain.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/VerifyTags.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_VERIFYACCUMULATE
#include "compiler/Accumulate/Passes.h.inc"

namespace {

LogicalResult verifyStep(func::FuncOp step, int64_t microbatches) {
  if (failed(verifyLoopChain(step, microbatches, /*mayBeInlined=*/false)))
    return failure();
  auto walked = step.walk([](accum::LoopOp loop) -> WalkResult {
    if (loop.getOrder() != accum::Order::Unordered)
      return WalkResult::advance();
    return loop.emitError("the order of accumulation is not fixed");
  });
  return failure(walked.wasInterrupted());
}

struct VerifyAccumulate : impl::VerifyAccumulateBase<VerifyAccumulate> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Recipe> recipe = getRecipe(module);
    if (failed(recipe))
      return signalPassFailure();
    func::FuncOp step = getFunction(module, ir::function::step);
    if (!step || failed(verifyStep(step, recipe->globalMicrobatches())))
      return signalPassFailure();
    bool ok = true;
    for (ir::RandomOpInterface random : ir::randomOps(module)) {
      if (random->getParentOfType<func::FuncOp>() != step) {
        if (random.drawsInEvaluation())
          continue;
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
