// titan-schedule-peel-last-microbatch: the last iteration behind its loop, beside the sum over
// ranks that waits for it.
#include "compiler/Schedule/Passes.h"
#include "compiler/Support/LoopChain.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Titan/TensorBuilder.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_PEELLASTMICROBATCH
#include "compiler/Schedule/Passes.h.inc"

namespace {

/// The first sum of gradients over ranks that follows from the sums of `loop` in its block, or
/// null.
Operation* findReductionBehind(accum::LoopOp loop) {
  SmallVector<Value> pending(loop.getSums());
  llvm::SmallPtrSet<Operation*, 16> seen;
  for (size_t i = 0; i < pending.size(); ++i)
    for (Operation* user : pending[i].getUsers()) {
      // What an optimizer's update exchanges waits for all gradients anyway.
      if (user->getBlock() != loop->getBlock() || !seen.insert(user).second ||
          (ir::getPhase(user) == ir::Phase::Update && !isa<accum::LoopOp>(user)))
        continue;
      if (isa<dist::AllReduceOp, dist::ReduceScatterOp>(user))
        return user;
      llvm::append_range(pending, user->getResults());
    }
  return nullptr;
}

auto options() { return remark::RemarkOpts::name("peel-last-microbatch").category("schedule"); }

class Peeler {
public:
  /// Of the loops of `block`, and of those in their bodies.
  void run(Block& block) {
    // What is peeled may hold loops, behind all others.
    for (Operation* op = block.empty() ? nullptr : &block.front(); op; op = op->getNextNode()) {
      auto loop = dyn_cast<accum::LoopOp>(op);
      if (!loop)
        continue;
      if (Operation* reduction = findReductionBehind(loop); reduction && mayPeel(loop))
        peel(loop, reduction);
      run(loop.getBlock());
    }
  }

private:
  static bool mayPeel(accum::LoopOp loop) {
    if (loop.getCount() == 1 || loop.getOrder() != accum::Order::Running || isPeeled(loop))
      return false;
    if (loop.getStacked() == 0)
      return true;
    remark::missed(loop.getLoc(), options())
        << remark::add("the last of {0} iterations stays in its loop", loop.getCount())
        << remark::reason("the loop stacks rows");
    return false;
  }

  static void peel(accum::LoopOp loop, Operation* reduction) {
    const auto last = static_cast<int64_t>(loop.getCount()) - 1;
    remark::passed(loop.getLoc(), options()) << remark::add(
        "the last of {0} iterations stands behind its loop, beside the {1} of '{2}'", last + 1,
        reduction->getName().stripDialect().str(), ir::describePlace(reduction));
    Operation* next = loop->getNextNode();
    IRMapping mapping = mapArguments(loop, last);
    OpBuilder builder(next);
    llvm::SmallPtrSet<Operation*, 32> peeled;
    for (Operation& op : loop.getBlock().without_terminator())
      peeled.insert(builder.clone(op, mapping));
    for (auto [sum, value] : llvm::zip_equal(loop.getSums(), loop.getYieldedSums()))
      sum.replaceUsesWithIf(mapping.lookupOrDefault(value), [&](OpOperand& use) {
        return !peeled.contains(loop->getBlock()->findAncestorOpInBlock(*use.getOwner()));
      });
    loop.setCount(last);
    loop->setAttr(peeledTag, builder.getUnitAttr());
  }

  /// Gives `loop` the first `last` rows of its batches, and the iteration behind it row `last`, the
  /// index, and the sums so far.
  static IRMapping mapArguments(accum::LoopOp loop, int64_t last) {
    IRMapping mapping;
    OpBuilder before(loop), behind(loop->getNextNode());
    const ir::TensorBuilder inFront(before, loop.getLoc()), after(behind, loop.getLoc());
    if (!loop.getIndex().use_empty())
      mapping.map(loop.getIndex(), arith::ConstantIndexOp::create(behind, loop.getLoc(), last));
    for (auto [i, slice] : llvm::enumerate(loop.getSlices())) {
      Value batch = loop.getBatches()[i];
      if (!slice.use_empty())
        mapping.map(slice,
                    after.reshape(rowsOf(after, batch, last, 1), ir::tensorType(slice).getShape()));
      loop.getBatchesMutable()[i].set(rowsOf(inFront, batch, 0, last));
    }
    for (auto [accumulator, sum] : llvm::zip_equal(loop.getAccumulators(), loop.getSums()))
      mapping.map(accumulator, sum);
    return mapping;
  }

  static Value rowsOf(const ir::TensorBuilder& t, Value batch, int64_t first, int64_t rows) {
    auto type = ir::tensorType(batch);
    SmallVector<int64_t> shape(type.getShape()), offsets(shape.size(), 0), strides(shape.size(), 1);
    shape[0] = rows;
    offsets[0] = first;
    return t.create<ir::SliceOp>(type.clone(shape), batch, offsets, strides);
  }
};

struct PeelLastMicrobatch : impl::PeelLastMicrobatchBase<PeelLastMicrobatch> {
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>(ir::function::step);
    if (step && !step.isDeclaration() && dist::meshOf(step))
      Peeler().run(step.getBody().front());
  }
};

} // namespace

} // namespace titan
