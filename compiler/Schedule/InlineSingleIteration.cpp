// titan-schedule-inline-single-iteration: a loop over one microbatch is its body.
#include "compiler/Schedule/Passes.h"
#include "compiler/Support/RecipeAttribute.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Titan/TensorBuilder.h"
#include "dialects/Titan/ops/Random.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

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

/// Does a sum over ranks take each value of `sum` as a leaf of its tree? A leaf is 0 + x there.
bool isLeafOfRanks(Value sum) {
  return !sum.use_empty() && llvm::all_of(sum.getUsers(), [](Operation* user) {
    if (auto pad = dyn_cast<ir::PadOp>(user))
      return pad.getValue().isZero() && isLeafOfRanks(pad);
    if (auto reduce = dyn_cast<dist::AllReduceOp>(user))
      return reduce.getOrder() == dist::Order::Tree;
    auto scatter = dyn_cast<dist::ReduceScatterOp>(user);
    return scatter && scatter.getOrder() == dist::Order::Tree;
  });
}

/// May x stand for 0 + x in `sum`? Of a tree it is a leaf, which is never -0.
bool mayDropZero(Value sum, bool isTree) {
  return !isTree || !isa<FloatType>(getElementTypeOrSelf(sum)) || isLeafOfRanks(sum);
}

/// Ops that add a term to an accumulator of zeros give the term alone.
void dropZeroAccumulator(BlockArgument accumulator) {
  // Each user once, before any is erased: one op may use it twice.
  llvm::SmallSetVector<Operation*, 4> users(llvm::from_range, accumulator.getUsers());
  for (Operation* user : users) {
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
  return loop.getCount() == 1 && loop.getOrder() == accum::Order::Running;
}

void eraseDeadIndex(Value index) {
  Operation* op = index.getDefiningOp();
  if (!op || !op->use_empty() || !isa<arith::ArithDialect>(op->getDialect()))
    return;
  llvm::SmallSetVector<Value, 2> operands(llvm::from_range, op->getOperands());
  op->erase();
  llvm::for_each(operands, eraseDeadIndex);
}

/// The index is 0 from here on: a random op whose base follows from it begins where the global
/// tensor does.
void dropIndex(accum::LoopOp loop) {
  if (loop.getIndex().use_empty())
    return;
  OpBuilder builder(loop);
  Value zero = arith::ConstantIndexOp::create(builder, loop.getLoc(), 0);
  loop.getIndex().replaceAllUsesWith(zero);
  for (ir::RandomOpInterface random : ir::randomOps(loop)) {
    MutableOperandRange base = random.getBaseMutable();
    if (base.empty() || ir::divisorOf(base[0].get()) != 0)
      continue;
    Value dropped = base[0].get();
    random.dropBase();
    eraseDeadIndex(dropped);
  }
  if (zero.use_empty())
    zero.getDefiningOp()->erase();
}

void inlineLoop(accum::LoopOp loop, bool isTree) {
  dropIndex(loop);
  OpBuilder builder(loop);
  Block& body = loop.getBlock();
  for (auto [slice, batch] : llvm::zip_equal(loop.getSlices(), loop.getBatches()))
    if (!slice.use_empty())
      slice.replaceAllUsesWith(ir::ReshapeOp::create(builder, loop.getLoc(), slice.getType(), batch,
                                                     ArrayAttr(), ir::PhaseAttr()));
  for (auto [accumulator, init, sum] :
       llvm::zip_equal(loop.getAccumulators(), loop.getInits(), loop.getSums())) {
    if (isPositiveZero(init) && mayDropZero(sum, isTree))
      dropZeroAccumulator(accumulator);
    accumulator.replaceAllUsesWith(init);
  }
  for (auto [sum, value] : llvm::zip_equal(loop.getSums(), loop.getYieldedSums()))
    sum.replaceAllUsesWith(value);
  SmallVector<Value> rows(loop.getYieldedRows());
  body.getTerminator()->erase();
  loop->getBlock()->getOperations().splice(loop->getIterator(), body.getOperations());
  for (auto [stack, row] : llvm::zip_equal(loop.getStacks(), rows))
    stack.replaceAllUsesWith(
        ir::TensorBuilder(builder, loop.getLoc()).reshape(row, ir::tensorType(stack).getShape()));
  loop.erase();
}

struct InlineSingleIteration : impl::InlineSingleIterationBase<InlineSingleIteration> {
  void runOnOperation() override {
    FailureOr<Recipe> recipe = getRecipe(getOperation());
    if (failed(recipe))
      return signalPassFailure();
    SmallVector<accum::LoopOp> loops; // the inner ones first
    getOperation().walk([&](accum::LoopOp loop) {
      if (canInline(loop))
        loops.push_back(loop);
    });
    for (accum::LoopOp loop : loops)
      inlineLoop(loop, recipe->mesh.isTree());
  }
};

} // namespace

} // namespace titan
