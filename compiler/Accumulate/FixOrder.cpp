#include "compiler/Accumulate/Passes.h"
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

/// Splits the loop, over k > 2 microbatches, into one of count 2 around one of count k / 2 over the
/// neighbours; returns the inner one. Both are still of order tree.
accum::LoopOp splitTree(accum::LoopOp loop) {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  ir::TensorBuilder outside(builder, loc);
  const int64_t half = static_cast<int64_t>(loop.getCount()) / 2;
  // [k, ...] as [2, k / 2, ...].
  auto halved = [&](Value stack) {
    SmallVector<int64_t> shape(ir::tensorType(stack).getShape());
    shape[0] = half;
    shape.insert(shape.begin(), 2);
    return shape;
  };
  SmallVector<Value> batches;
  for (Value batch : loop.getBatches())
    batches.push_back(outside.reshape(batch, halved(batch)));
  SmallVector<Type> types(loop.getSums().getTypes()), innerTypes(types);
  for (Value stack : loop.getStacks()) {
    types.push_back(ir::tensorType(stack).clone(halved(stack)));
    innerTypes.push_back(accum::LoopOp::sliceType(types.back()));
  }
  auto outer = accum::LoopOp::create(builder, loc, types, batches, ValueRange(), 2,
                                     accum::Order::Tree, loop.getStacked());
  Block& body = outer.getBody().emplaceBlock();
  body.addArgument(builder.getIndexType(), loc);
  for (Value batch : batches)
    body.addArgument(accum::LoopOp::sliceType(batch.getType()), loc);
  builder.setInsertionPointToStart(&body);
  auto inner = accum::LoopOp::create(builder, loc, innerTypes, outer.getSlices(), ValueRange(),
                                     half, accum::Order::Tree, loop.getStacked());
  accum::YieldOp::create(builder, loc, inner.getResults());
  inner.getBody().takeBody(loop.getBody());
  if (BlockArgument index = inner.getIndex(); !index.use_empty()) {
    builder.setInsertionPointToStart(&inner.getBlock());
    Value first = arith::MulIOp::create(builder, loc, outer.getIndex(),
                                        arith::ConstantIndexOp::create(builder, loc, half));
    auto whole = arith::AddIOp::create(builder, loc, first, index);
    index.replaceAllUsesExcept(whole, whole);
  }

  builder.setInsertionPointAfter(outer);
  for (auto [sum, replacement] : llvm::zip_equal(loop.getSums(), outer.getSums()))
    sum.replaceAllUsesWith(replacement);
  for (auto [stack, replacement] : llvm::zip_equal(loop.getStacks(), outer.getStacks()))
    stack.replaceAllUsesWith(outside.reshape(replacement, ir::tensorType(stack).getShape()));
  loop.erase();
  return inner;
}

/// A tree over 2^n microbatches as n running loops of count 2, the inner one's sum a term of the
/// outer one's.
void makeTree(accum::LoopOp loop) {
  SmallVector<Value> zeros = zerosFor(loop);
  while (loop.getCount() > 2)
    loop = splitTree(loop);
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
