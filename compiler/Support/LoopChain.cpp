#include "compiler/Support/LoopChain.h"

#include "dialects/Dist/Dist.h"
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

Operation* sourceOf(Value value) {
  Operation* op = value.getDefiningOp();
  while (auto loop = dyn_cast_if_present<accum::LoopOp>(op)) {
    value = loop.getYieldedSums()[cast<OpResult>(value).getResultNumber()];
    op = value.getDefiningOp();
  }
  return op;
}

/// The sum of `a` and `b`, which belongs to whatever `term` belongs to.
static Value addLike(OpBuilder& builder, Value term, Value a, Value b) {
  if (Operation* source = sourceOf(term))
    return ir::TensorBuilder(builder, source).add(a, b);
  return ir::TensorBuilder(builder, term.getLoc()).add(a, b);
}

void makeRunning(accum::LoopOp loop, OpBuilder& outside) {
  const ir::TensorBuilder constants(outside, loop.getLoc());
  SmallVector<Value> zeros;
  for (Type type : loop.getSums().getTypes())
    zeros.push_back(constants.splat(type, 0));
  loop.getInitsMutable().assign(zeros);
  loop.setOrder(accum::Order::Running);
  Block& block = loop.getBlock();
  Operation* yield = block.getTerminator();
  OpBuilder builder(yield);
  for (unsigned i = 0; i < zeros.size(); ++i) {
    const Value term = yield->getOperand(i);
    const Value accumulator = block.addArgument(term.getType(), loop.getLoc());
    yield->setOperand(i, addLike(builder, term, accumulator, term));
  }
}

void sumFromZero(accum::LoopOp inner, OpBuilder& outside) {
  accum::LoopOp outer = inner.getOuter();
  Operation* yield = outer.getBlock().getTerminator();
  OpBuilder builder(yield);
  const ir::TensorBuilder constants(outside, outer.getLoc());
  for (unsigned i = 0; i < inner.getSums().size(); ++i) {
    const Value sum = inner.getSums()[i];
    inner.getInitsMutable()[i].set(constants.splat(sum.getType(), 0));
    yield->setOperand(i, addLike(builder, sum, outer.getAccumulators()[i], sum));
  }
}

/// [product of `counts`, ...] as [counts..., ...].
static SmallVector<int64_t> splitShape(Value stack, ArrayRef<int64_t> counts) {
  SmallVector<int64_t> shape(counts);
  llvm::append_range(shape, ir::tensorType(stack).getShape().drop_front());
  return shape;
}

/// A loop with an empty body, of the order of `like`, that stacks as many results.
static accum::LoopOp createLoop(OpBuilder& builder, Location loc, TypeRange types,
                                ValueRange batches, ValueRange inits, int64_t count,
                                accum::LoopOp like) {
  auto loop = accum::LoopOp::create(builder, loc, types, batches, inits, count, like.getOrder(),
                                    like.getStacked());
  Block& body = loop.getBody().emplaceBlock();
  body.addArgument(builder.getIndexType(), loc);
  for (Value batch : batches)
    body.addArgument(accum::LoopOp::sliceType(batch.getType()), loc);
  for (Value init : inits)
    body.addArgument(init.getType(), loc);
  return loop;
}

/// Gives the body of the innermost loop the index of its iterations in those of all loops.
static void numberThrough(ArrayRef<accum::LoopOp> loops) {
  BlockArgument index = accum::LoopOp(loops.back()).getIndex();
  if (index.use_empty())
    return;
  SmallVector<OpOperand*> uses =
      llvm::map_to_vector(index.getUses(), [](OpOperand& use) { return &use; });
  OpBuilder builder = OpBuilder::atBlockBegin(index.getOwner());
  const Location loc = accum::LoopOp(loops.back()).getLoc();
  Value number = accum::LoopOp(loops.front()).getIndex();
  for (accum::LoopOp loop : loops.drop_front()) {
    Value first = arith::MulIOp::create(
        builder, loc, number,
        arith::ConstantIndexOp::create(builder, loc, static_cast<int64_t>(loop.getCount())));
    number = arith::AddIOp::create(builder, loc, first, loop.getIndex());
  }
  for (OpOperand* use : uses)
    use->set(number);
}

Operation* firstReader(ArrayRef<OpOperand*> uses, Block* block) {
  Operation* first = nullptr;
  for (OpOperand* use : uses) {
    Operation* user = block->findAncestorOpInBlock(*use->getOwner());
    if (!first || user->isBeforeInBlock(first))
      first = user;
  }
  return first;
}

Operation* firstReader(Value value) {
  return firstReader(llvm::map_to_vector(value.getUses(), [](OpOperand& use) { return &use; }),
                     value.getParentBlock());
}

SmallVector<accum::LoopOp> nestLoop(accum::LoopOp loop, ArrayRef<int64_t> counts) {
  if (counts.size() < 2)
    return {loop};
  OpBuilder builder(loop);
  const Location loc = loop.getLoc();
  ir::TensorBuilder outside(builder, loc);
  SmallVector<Value> batches, inits(loop.getInits());
  for (Value batch : loop.getBatches())
    batches.push_back(outside.reshape(batch, splitShape(batch, counts)));
  SmallVector<Type> types(loop.getSums().getTypes());
  for (Value stack : loop.getStacks())
    types.push_back(ir::tensorType(stack).clone(splitShape(stack, counts)));
  SmallVector<accum::LoopOp> loops;
  for (int64_t count : counts) {
    accum::LoopOp inner = createLoop(builder, loc, types, batches, inits, count, loop);
    if (!loops.empty())
      accum::YieldOp::create(builder, loc, inner.getResults());
    loops.push_back(inner);
    builder.setInsertionPointToStart(&inner.getBlock());
    batches.assign(inner.getSlices().begin(), inner.getSlices().end());
    inits.assign(inner.getAccumulators().begin(), inner.getAccumulators().end());
    for (Type& type : MutableArrayRef(types).take_back(loop.getStacked()))
      type = accum::LoopOp::sliceType(type);
  }
  accum::LoopOp innermost = loops.back();
  innermost.getBody().takeBody(loop.getBody());
  numberThrough(loops);

  for (auto [sum, replacement] : llvm::zip_equal(loop.getSums(), loops.front().getSums()))
    sum.replaceAllUsesWith(replacement);
  for (auto [stack, replacement] : llvm::zip_equal(loop.getStacks(), loops.front().getStacks())) {
    Operation* reader = firstReader(stack);
    if (!reader)
      continue;
    builder.setInsertionPoint(reader);
    const ir::TensorBuilder forReader(builder, reader);
    stack.replaceAllUsesWith(forReader.reshape(replacement, ir::tensorType(stack).getShape()));
  }
  loop.erase();
  return loops;
}

bool isPeeled(accum::LoopOp loop) { return loop->hasAttr(peeledTag); }

namespace {

/// Does `op` take neighbours along the outermost dimension, and all of the others?
bool cutsOutermost(ir::SliceOp op) {
  return op.getType().getRank() > 0 && op.getStrides()[0] == 1 &&
         op.getType().getShape().drop_front() ==
             ir::tensorType(op.getOperand()).getShape().drop_front();
}

/// What `op` shows rows of, all of it in another shape included; null if it shows none.
Value shownBy(Operation* op) {
  auto slice = dyn_cast<ir::SliceOp>(op);
  return isa<ir::ReshapeOp, kernel::CastShapeOp, kernel::RowsOp>(op) ||
                 (slice && cutsOutermost(slice))
             ? op->getOperand(0)
             : Value();
}

/// What the loops in `block` run.
struct Microbatches {
  int64_t number = 0;
  std::string text;  ///< "3", "2 x 3", "3 + 1"
  int64_t terms = 0; ///< of `text`, as a sum
};

FailureOr<Microbatches> microbatchesOf(Block& block, unsigned depth) {
  SmallVector<accum::LoopOp> loops(block.getOps<accum::LoopOp>());
  Microbatches all;
  for (auto [i, loop] : llvm::enumerate(loops)) {
    // One of one iteration goes before there is a command table.
    const unsigned inner = depth + (loop.getCount() > 1 || isPeeled(loop));
    if (inner > maxRepeatDepth)
      return loop.emitError("stands inside of ")
             << depth << " others: at most " << int{maxRepeatDepth} << " loops nest";
    if (i > 0 && !isPeeled(loops[i - 1]))
      return loop.emitError("stands beside another accum.loop: put one into the other");
    FailureOr<Microbatches> inside = microbatchesOf(loop.getBlock(), inner);
    if (failed(inside))
      return failure();
    all.text += (all.terms++ ? " + " : "") + std::to_string(loop.getCount());
    if (inside->terms > 0)
      all.text += inside->terms == 1 ? " x " + inside->text : " x (" + inside->text + ")";
    all.number += static_cast<int64_t>(loop.getCount()) * inside->number;
  }
  // Without a loop the block is one microbatch; behind a peeled loop it holds one.
  if (!loops.empty() && !isPeeled(loops.back()))
    return all;
  if (!loops.empty())
    all.text += " + 1", ++all.terms;
  ++all.number;
  return all;
}

} // namespace

bool isPartOfBatch(ir::SliceOp slice) {
  if (!dist::meshOf(slice))
    return false;
  Value whole = slice.getResult();
  while (Operation* op = whole.getDefiningOp())
    if (whole = shownBy(op); !whole)
      return false;
  auto argument = cast<BlockArgument>(whole);
  Operation* parent = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<accum::LoopOp>(parent))
    return llvm::is_contained(loop.getSlices(), argument);
  auto function = dyn_cast<func::FuncOp>(parent);
  return function && function.getArgAttr(argument.getArgNumber(), ir::tag::input);
}

LogicalResult verifyLoopChain(func::FuncOp step, int64_t microbatches, bool mayBeInlined) {
  Block& body = step.getBody().front();
  auto loops = body.getOps<accum::LoopOp>();
  if (loops.empty())
    return mayBeInlined && microbatches == 1
               ? success()
               : step.emitError("has no accum.loop for ") << microbatches << " microbatches";
  FailureOr<Microbatches> run = microbatchesOf(body, 0);
  if (failed(run))
    return failure();
  if (run->number == microbatches)
    return success();
  InFlightDiagnostic error = (*loops.begin()).emitError("runs ") << run->text;
  if (run->text != std::to_string(run->number))
    error << " = " << run->number;
  return error << " microbatches, the recipe says " << microbatches;
}

} // namespace titan
