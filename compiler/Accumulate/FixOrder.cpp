#include "compiler/Accumulate/Passes.h"
#include "compiler/Support/RecipeAttribute.h"
#include "dialects/Titan/TensorBuilder.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_FIXORDER
#include "compiler/Accumulate/Passes.h.inc"

namespace {

void makeRunning(accum::LoopOp loop) {
  OpBuilder builder(loop);
  ir::TensorBuilder outside(builder, loop.getLoc());
  SmallVector<Value> inits;
  for (Type type : loop.getResultTypes())
    inits.push_back(outside.splat(type, 0));
  loop.getInitsMutable().assign(inits);
  loop.setOrder(accum::Order::Running);

  Block& block = loop.getBlock();
  Operation* yield = block.getTerminator();
  builder.setInsertionPoint(yield);
  for (OpOperand& term : yield->getOpOperands()) {
    BlockArgument accumulator = block.addArgument(term.get().getType(), loop.getLoc());
    // The addition belongs to whatever the term belongs to.
    Operation* source = term.get().getDefiningOp();
    ir::TensorBuilder t = source ? ir::TensorBuilder(builder, source) : outside;
    term.set(t.add(accumulator, term.get()));
  }
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
    getOperation().walk([](accum::LoopOp loop) {
      if (loop.getOrder() == accum::Order::Unordered)
        makeRunning(loop);
    });
  }
};

} // namespace

} // namespace titan
