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
    if (depth == maxRepeatDepth)
      return loop.emitError("stands inside of ")
             << depth << " others: at most " << int{maxRepeatDepth} << " loops nest";
    if (i > 0 && !isPeeled(loops[i - 1]))
      return loop.emitError("stands beside another accum.loop: put one into the other");
    FailureOr<Microbatches> inside = microbatchesOf(loop.getBlock(), depth + 1);
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
