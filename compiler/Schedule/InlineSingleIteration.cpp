// titan-schedule-inline-single-iteration: a loop over one microbatch is its body.
#include "compiler/Schedule/Passes.h"
#include "dialects/Titan/TensorBuilder.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_INLINESINGLEITERATION
#include "compiler/Schedule/Passes.h.inc"

namespace {

bool isPositiveZero(Value value) {
  SplatElementsAttr splat;
  if (!matchPattern(value, m_Constant(&splat)))
    return false;
  if (isa<FloatType>(splat.getElementType()))
    return splat.getSplatValue<APFloat>().isPosZero();
  return splat.getSplatValue<APInt>().isZero();
}

/// Ops that add a term to an accumulator of zeros give the term alone.
void dropZeroAccumulator(BlockArgument accumulator) {
  for (OpOperand& use : llvm::make_early_inc_range(accumulator.getUses())) {
    Operation* user = use.getOwner();
    if (auto accumulating = dyn_cast<ir::AccumulatingOpInterface>(user)) {
      if (accumulating.getAcc() == accumulator)
        accumulating.getAccMutable().clear();
    } else if (auto add = dyn_cast<ir::AddOp>(user)) {
      add.getResult().replaceAllUsesWith(add.getLhs() == accumulator ? add.getRhs() : add.getLhs());
      add.erase();
    }
  }
}

bool canInline(accum::LoopOp loop) {
  // What else the index may feed stays in its loop.
  return loop.getCount() == 1 && loop.getOrder() == accum::Order::Running &&
         llvm::all_of(loop.getIndex().getUsers(),
                      [](Operation* user) { return bool(ir::asRandom(user)); });
}

void inlineLoop(accum::LoopOp loop) {
  OpBuilder builder(loop);
  Block& body = loop.getBlock();
  for (Operation* user : llvm::make_early_inc_range(loop.getIndex().getUsers()))
    cast<ir::RandomOpInterface>(user).dropMicrobatch();
  for (auto [slice, batch] : llvm::zip_equal(loop.getSlices(), loop.getBatches()))
    if (!slice.use_empty())
      slice.replaceAllUsesWith(ir::ReshapeOp::create(builder, loop.getLoc(), slice.getType(), batch,
                                                     ArrayAttr(), ir::PhaseAttr()));
  for (auto [accumulator, init] : llvm::zip_equal(loop.getAccumulators(), loop.getInits())) {
    if (isPositiveZero(init))
      dropZeroAccumulator(accumulator);
    accumulator.replaceAllUsesWith(init);
  }
  auto yield = cast<accum::YieldOp>(body.getTerminator());
  loop.replaceAllUsesWith(yield.getValues());
  yield.erase();
  Block* parent = loop->getBlock();
  parent->getOperations().splice(loop->getIterator(), body.getOperations());
  loop.erase();
}

struct InlineSingleIteration : impl::InlineSingleIterationBase<InlineSingleIteration> {
  void runOnOperation() override {
    SmallVector<accum::LoopOp> loops;
    getOperation().walk([&](accum::LoopOp loop) {
      if (canInline(loop))
        loops.push_back(loop);
    });
    for (accum::LoopOp loop : loops)
      inlineLoop(loop);
  }
};

} // namespace

} // namespace titan
