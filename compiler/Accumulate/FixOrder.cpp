#include "compiler/Accumulate/Passes.h"
#include "compiler/Support/LoopChain.h"
#include "compiler/Support/RecipeAttribute.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_FIXORDER
#include "compiler/Accumulate/Passes.h.inc"

namespace {

/// A tree over 2^n microbatches as n running loops of count 2, each from zero.
void makeLevels(accum::LoopOp loop) {
  const unsigned levels = llvm::Log2_64(loop.getCount());
  const SmallVector<int64_t> counts(levels, 2);
  const SmallVector<accum::LoopOp> nested = nestLoop(loop, counts);
  OpBuilder zeros(nested.front());
  for (accum::LoopOp level : llvm::reverse(nested))
    makeRunning(level, zeros);
}

struct FixOrder : impl::FixOrderBase<FixOrder> {
  void runOnOperation() override {
    FailureOr<Recipe> recipe = getRecipe(getOperation());
    if (failed(recipe))
      return signalPassFailure();
    SmallVector<accum::LoopOp> loops;
    getOperation().walk([&](accum::LoopOp loop) { loops.push_back(loop); });
    for (accum::LoopOp loop : loops)
      fix(loop, recipe->mesh.isTree());
  }

  static void fix(accum::LoopOp loop, bool isTree) {
    if (loop.getOrder() == accum::Order::Running)
      return;
    OpBuilder zeros(loop);
    if (isTree) // whose levels *shard* makes
      loop.setOrder(accum::Order::Tree);
    else if (loop.getOrder() == accum::Order::Tree)
      makeLevels(loop);
    else
      makeRunning(loop, zeros);
  }
};

} // namespace

} // namespace titan
