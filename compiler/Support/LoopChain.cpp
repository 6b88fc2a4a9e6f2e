#include "compiler/Support/LoopChain.h"

#include "dialects/Titan/TensorBuilder.h"
#include "runtime/program/Affine.h"

using namespace mlir;

namespace titan {

int64_t iterationsOf(accum::LoopOp loop) {
  int64_t iterations = 1;
  for (; loop; loop = loop.getOuter())
    iterations *= static_cast<int64_t>(loop.getCount());
  return iterations;
}

/// [n * count, ...] as [n, count, ...].
static SmallVector<int64_t> splitShape(Value stack, int64_t count) {
  SmallVector<int64_t> shape(ir::tensorType(stack).getShape());
  const int64_t outer = shape[0] / count;
  shape[0] = count;
  shape.insert(shape.begin(), outer);
  return shape;
}

/// Gives `loop` the index of its iterations in those of all loops directly around it, too.
static void numberThrough(accum::LoopOp outer, accum::LoopOp inner) {
  BlockArgument index = inner.getIndex();
  if (index.use_empty())
    return;
  OpBuilder builder = OpBuilder::atBlockBegin(&inner.getBlock());
  const Location loc = inner.getLoc();
  Value first = arith::MulIOp::create(
      builder, loc, outer.getIndex(),
      arith::ConstantIndexOp::create(builder, loc, static_cast<int64_t>(inner.getCount())));
  auto whole = arith::AddIOp::create(builder, loc, first, index);
  index.replaceAllUsesExcept(whole, whole);
}

accum::LoopOp splitLoop(accum::LoopOp loop, int64_t count) {
  OpBuilder builder(loop);
  const Location loc = loop.getLoc();
  ir::TensorBuilder outside(builder, loc);
  const auto outerCount = static_cast<int64_t>(loop.getCount()) / count;
  SmallVector<Value> batches;
  for (Value batch : loop.getBatches())
    batches.push_back(outside.reshape(batch, splitShape(batch, count)));
  SmallVector<Type> types(loop.getSums().getTypes()), innerTypes(types);
  for (Value stack : loop.getStacks()) {
    types.push_back(ir::tensorType(stack).clone(splitShape(stack, count)));
    innerTypes.push_back(accum::LoopOp::sliceType(types.back()));
  }
  auto outer = accum::LoopOp::create(builder, loc, types, batches, loop.getInits(), outerCount,
                                     loop.getOrder(), loop.getStacked());
  Block& body = outer.getBody().emplaceBlock();
  body.addArgument(builder.getIndexType(), loc);
  for (Value batch : batches)
    body.addArgument(accum::LoopOp::sliceType(batch.getType()), loc);
  for (Value init : loop.getInits())
    body.addArgument(init.getType(), loc);
  builder.setInsertionPointToStart(&body);
  auto inner =
      accum::LoopOp::create(builder, loc, innerTypes, outer.getSlices(), outer.getAccumulators(),
                            count, loop.getOrder(), loop.getStacked());
  accum::YieldOp::create(builder, loc, inner.getResults());
  inner.getBody().takeBody(loop.getBody());
  numberThrough(outer, inner);

  builder.setInsertionPointAfter(outer);
  for (auto [sum, replacement] : llvm::zip_equal(loop.getSums(), outer.getSums()))
    sum.replaceAllUsesWith(replacement);
  for (auto [stack, replacement] : llvm::zip_equal(loop.getStacks(), outer.getStacks()))
    stack.replaceAllUsesWith(outside.reshape(replacement, ir::tensorType(stack).getShape()));
  loop.erase();
  return inner;
}

/// The loops of `step` from the outermost on, or an error.
static FailureOr<SmallVector<accum::LoopOp>> chainOf(func::FuncOp step) {
  SmallVector<accum::LoopOp> chain;
  bool isChain = true;
  step.walk<WalkOrder::PreOrder>([&](accum::LoopOp loop) {
    if (loop.getOuter() != (chain.empty() ? accum::LoopOp() : chain.back()) && isChain) {
      loop.emitError("stands beside another accum.loop: put one into the other");
      isChain = false;
    }
    chain.push_back(loop);
  });
  if (!isChain)
    return failure();
  return chain;
}

LogicalResult verifyLoopChain(func::FuncOp step, int64_t microbatches, bool mayBeInlined) {
  FailureOr<SmallVector<accum::LoopOp>> chain = chainOf(step);
  if (failed(chain))
    return failure();
  if (chain->empty())
    return mayBeInlined && microbatches == 1
               ? success()
               : step.emitError("has no accum.loop for ") << microbatches << " microbatches";
  if (chain->size() > maxRepeatDepth)
    return chain->back().emitError("stands inside of ")
           << chain->size() - 1 << " others: at most " << int{maxRepeatDepth} << " loops nest";
  int64_t iterations = iterationsOf(chain->back());
  if (iterations == microbatches)
    return success();
  InFlightDiagnostic error = chain->front().emitError("runs ");
  if (chain->size() > 1) {
    llvm::interleave(
        *chain, [&](accum::LoopOp loop) { error << loop.getCount(); }, [&] { error << " x "; });
    error << " = ";
  }
  return error << iterations << " microbatches, the recipe says " << microbatches;
}

} // namespace titan
