#include "compiler/Accumulate/Passes.h"
#include "compiler/Support/LoopChain.h"
#include "compiler/Support/RecipeAttribute.h"
#include "dialects/Titan/TensorBuilder.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_FIXORDER
#include "compiler/Accumulate/Passes.h.inc"

namespace {

SmallVector<Value> zerosFor(accum::LoopOp loop) {
  OpBuilder builder(loop);
  ir::TensorBuilder outside(builder, loop.getLoc());
  SmallVector<Value> zeros;
  for (Type type : loop.getSums().getTypes())
    zeros.push_back(outside.splat(type, 0));
  return zeros;
}

/// Adds what the loop yields to accumulators that start at `zeros`. The additions belong to
/// whatever `terms`, those of one microbatch, belong to.
void makeRunning(accum::LoopOp loop, ArrayRef<Value> zeros, ArrayRef<Value> terms) {
  loop.getInitsMutable().assign(zeros);
  loop.setOrder(accum::Order::Running);
  Block& block = loop.getBlock();
  Operation* yield = block.getTerminator();
  OpBuilder builder(yield);
  for (auto [sum, term] : llvm::zip(yield->getOpOperands(), terms)) {
    BlockArgument accumulator = block.addArgument(term.getType(), loop.getLoc());
    Operation* source = term.getDefiningOp();
    ir::TensorBuilder t =
        source ? ir::TensorBuilder(builder, source) : ir::TensorBuilder(builder, loop.getLoc());
    sum.set(t.add(accumulator, sum.get()));
  }
}

/// A tree over 2^n microbatches as n running loops of count 2, the inner one's sum a term of the
/// outer one's.
void makeTree(accum::LoopOp loop) {
  SmallVector<Value> zeros = zerosFor(loop);
  while (loop.getCount() > 2)
    loop = splitLoop(loop, static_cast<int64_t>(loop.getCount()) / 2);
  SmallVector<Value> terms(loop.getYieldedSums());
  for (; loop; loop = loop.getOuter())
    makeRunning(loop, zeros, terms);
}

struct FixOrder : impl::FixOrderBase<FixOrder> {
  void runOnOperation() override {
    FailureOr<Recipe> recipe = getRecipe(getOperation());
    if (failed(recipe))
      return signalPassFailure();
    if (recipe->mesh.reduce == "tree") {
      getOperation().emitError(
          "mesh.reduce = \"tree\" is not available in this version: use \"fast\"");
      return signalPassFailure();
    }
    SmallVector<accum::LoopOp> loops;
    getOperation().walk([&](accum::LoopOp loop) { loops.push_back(loop); });
    for (accum::LoopOp loop : loops) {
      if (loop.getOrder() == accum::Order::Unordered)
        makeRunning(loop, zerosFor(loop), llvm::to_vector_of<Value>(loop.getYieldedSums()));
      else if (loop.getOrder() == accum::Order::Tree)
        makeTree(loop);
    }
  }
};

} // namespace

} // namespace titan
