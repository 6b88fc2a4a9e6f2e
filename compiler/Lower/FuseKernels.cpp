// titan-lower-fuse-kernels: evaluates producers inside of the kernels that read them.
#include "compiler/Lower/Classify.h"
#include "compiler/Lower/KernelMerge.h"
#include "compiler/Lower/Passes.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using titan::kernel::FusedOp;

namespace titan {

#define GEN_PASS_DEF_FUSEKERNELS
#include "compiler/Lower/Passes.h.inc"

namespace {

int64_t pointsOf(ArrayRef<int64_t> extents) {
  int64_t points = 1;
  for (int64_t extent : extents)
    points *= extent;
  return points;
}

/// Evaluating it once more per element costs less than a load: a few adds and selects, no
/// reduction, no division, no function, no random number.
bool isCheap(FusedOp op) {
  unsigned operations = 0;
  for (Operation& body : op.getBlock().without_terminator()) {
    if (isa<arith::ConstantOp>(body))
      continue;
    if (isa<kernel::ReduceOp, kernel::RandomHalfOp, arith::DivFOp, arith::DivSIOp, arith::DivUIOp>(
            body) ||
        isa<math::MathDialect>(body.getDialect()))
      return false;
    ++operations;
  }
  return operations <= 4;
}

/// Cheap, and reads less than it writes: broadcasts, fills, coordinates. Copies of it cost nothing.
bool isDuplicable(FusedOp op) {
  int64_t read = 0;
  for (Value in : op.getIns())
    read += cast<ShapedType>(in.getType()).getNumElements();
  return isCheap(op) && read * 2 <= pointsOf(op.getSpace());
}

/// Does the merged space repeat the producer's points in a way that codegen cannot hoist out of the
/// inner loop? Hoistable are repeats over the innermost dimensions only.
bool repeatsWork(const lower::MergedSpace& space, FusedOp producer) {
  if (pointsOf(producer.getSpace()) == 1)
    return pointsOf(space.extents) > 1;
  llvm::SmallBitVector used(space.extents.size());
  for (AffineExpr expr : space.toProducer.getResults())
    for (unsigned d = 0; d < space.extents.size(); ++d)
      if (expr.isFunctionOfDim(d))
        used.set(d);
  int last = used.find_last();
  for (int d = 0; d < last; ++d)
    if (!used.test(d) && space.extents[d] != 1)
      return true;
  return false;
}

/// Points up to which a kernel's launch costs more than its work.
constexpr int64_t smallKernel = 4096;
constexpr unsigned mostSiblingOperands = 48;

class Fuser {
public:
  Fuser(MLIRContext* context, unsigned maxOperands) : rewriter(context), maxOperands(maxOperands) {}

  void run(Block& block) {
    for (Operation& op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (auto fused = dyn_cast<FusedOp>(op))
        lower::dropUnusedResults(rewriter, fused);
    // In program order, so that a producer has already taken in its own producers.
    SmallVector<Operation*> consumers;
    for (Operation& op : block)
      if (isa<FusedOp>(op))
        consumers.push_back(&op);
    for (Operation* op : consumers)
      fuseProducersInto(cast<FusedOp>(op));
    fuseSmallSiblings(block);
    for (Operation& op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isa<kernel::EmptyOp>(op) && op.use_empty())
        rewriter.eraseOp(&op);
  }

private:
  IRRewriter rewriter;
  unsigned maxOperands;

  void fuseProducersInto(FusedOp consumer) {
    SmallVector<std::pair<FusedOp, std::string>> missed;
    for (bool changed = true; changed;) {
      changed = false;
      missed.clear();
      for (Value in : consumer.getIns()) {
        auto producer = in.getDefiningOp<FusedOp>();
        // Into a loop's body only copies go: the kernel before the loop runs once.
        if (!producer || (producer->getBlock() != consumer->getBlock() && !isDuplicable(producer)))
          continue;
        std::string why;
        if (FusedOp merged = fuse(producer, consumer, why)) {
          consumer = merged;
          changed = true;
          break;
        }
        missed.push_back({producer, why});
      }
    }
    for (auto& [producer, why] : missed)
      report(producer, consumer, why);
  }

  void report(FusedOp producer, FusedOp consumer, StringRef why) {
    remark::missed(consumer.getLoc(), remark::RemarkOpts::name("fuse-kernels").category("lower"))
        << remark::add("'{0}' keeps apart from '{1}'", ir::describePlace(producer),
                       ir::describePlace(consumer))
        << remark::reason("{0}", why.str());
  }

  /// The ops between producer and consumer that need the producer; none, if the consumer needs one
  /// of them.
  std::optional<SmallVector<Operation*>> findOpsToMove(FusedOp producer, FusedOp consumer) {
    llvm::SmallPtrSet<Operation*, 16> dependent;
    SmallVector<Operation*> ordered;
    auto depends = [&](Operation* op) {
      bool found = false;
      op->walk([&](Operation* nested) {
        for (Value operand : nested->getOperands())
          found |= dependent.contains(operand.getDefiningOp());
      });
      return found;
    };
    dependent.insert(producer);
    for (Operation* op = producer->getNextNode(); op != consumer; op = op->getNextNode())
      if (depends(op)) {
        dependent.insert(op);
        ordered.push_back(op);
      }
    dependent.erase(producer);
    if (depends(consumer))
      return std::nullopt;
    return ordered;
  }

  FusedOp fuse(FusedOp producer, FusedOp consumer, std::string& why) {
    SmallVector<lower::MergedSpace> spaces = lower::findMergedSpaces(producer, consumer, why);
    for (const lower::MergedSpace& space : spaces)
      if (FusedOp merged = fuseIn(space, producer, consumer, why))
        return merged;
    return nullptr;
  }

  FusedOp fuseIn(const lower::MergedSpace& space, FusedOp producer, FusedOp consumer,
                 std::string& why) {
    if (repeatsWork(space, producer) && !isCheap(producer)) {
      why = "it would be computed again and again";
      return nullptr;
    }
    // A strided read is worth one operand's detour, not several.
    if (consumer.getKernelClass() == kernel::KernelClass::Transpose &&
        producer.getIns().size() > 1) {
      why = "the reader transposes it";
      return nullptr;
    }
    SmallVector<unsigned> kept;
    bool othersRead = false;
    for (OpResult result : producer.getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation* user) { return user != consumer; })) {
        othersRead = true;
        kept.push_back(result.getResultNumber());
      }
    // What is stored for others anyway is read again in the backward pass, rather than one result
    // more kept alive until then.
    if (ir::getPhase(producer) == ir::Phase::Forward &&
        ir::getPhase(consumer) == ir::Phase::Backward &&
        llvm::all_of(consumer.getIns(),
                     [&](Value in) {
                       return in.getDefiningOp() != producer ||
                              llvm::is_contained(kept, cast<OpResult>(in).getResultNumber());
                     }) &&
        !isDuplicable(producer)) {
      why = "its result is stored anyway";
      return nullptr;
    }
    bool duplicate =
        isDuplicable(producer) && (othersRead || producer->getBlock() != consumer->getBlock());
    if (duplicate)
      kept.clear();
    if (!kept.empty() && repeatsWork(space, producer)) {
      why = "others read its result, which would be written again and again";
      return nullptr;
    }
    if (!kept.empty() && !lower::visitsWholeSpace(space, producer)) {
      why = "others read its result, which the reader does not cover";
      return nullptr;
    }
    if (consumer.getIns().size() + producer.getIns().size() + consumer.getOuts().size() +
            kept.size() >
        maxOperands) {
      why = "the merged kernel has too many operands";
      return nullptr;
    }
    return replacePair(producer, consumer, space, kept, /*keepProducer=*/duplicate, why);
  }

  FusedOp replacePair(FusedOp producer, FusedOp consumer, const lower::MergedSpace& space,
                      ArrayRef<unsigned> kept, bool keepProducer, std::string& why) {
    std::optional<SmallVector<Operation*>> toMove = SmallVector<Operation*>();
    if (!kept.empty())
      toMove = findOpsToMove(producer, consumer);
    if (!toMove) {
      why = "the reader also needs something made from it";
      return nullptr;
    }
    // Nothing moves behind the update: a run that waits there for a snapshot would hold it up.
    auto isUpdate = [](Operation* op) { return ir::getPhase(op) == ir::Phase::Update; };
    if ((isUpdate(producer) || isUpdate(consumer)) &&
        llvm::any_of(*toMove, [&](Operation* op) { return !isUpdate(op); })) {
      why = "what else reads its result belongs to an earlier phase";
      return nullptr;
    }
    FailureOr<FusedOp> merged = lower::buildMerged(rewriter, producer, consumer, space, kept, why);
    if (failed(merged))
      return nullptr;
    remark::passed(merged->getLoc(), remark::RemarkOpts::name("fuse-kernels").category("lower"))
        << remark::add("'{0}' is computed inside of '{1}'", ir::describePlace(producer),
                       ir::describePlace(consumer));

    Operation* after = *merged;
    for (Operation* op : *toMove) {
      rewriter.moveOpAfter(op, after);
      after = op;
    }
    unsigned own = consumer.getNumResults();
    rewriter.replaceOp(consumer, merged->getResults().take_front(own));
    if (keepProducer) {
      if (producer->use_empty())
        rewriter.eraseOp(producer);
    } else {
      for (auto [i, j] : llvm::enumerate(kept))
        rewriter.replaceAllUsesWith(producer.getResult(j), merged->getResult(own + i));
      rewriter.eraseOp(producer);
    }
    return *merged;
  }

  /// Small kernels cost their launch and little else: independent ones over one space run together,
  /// where nothing between the two has to move.
  void fuseSmallSiblings(Block& block) {
    llvm::MapVector<Attribute, FusedOp> last; // by space
    for (Operation& op : llvm::make_early_inc_range(block)) {
      auto fused = dyn_cast<FusedOp>(op);
      if (!fused || pointsOf(fused.getSpace()) > smallKernel)
        continue;
      FusedOp& first = last[fused.getSpaceAttr()];
      FusedOp merged;
      if (first && first.getKernelClass() == fused.getKernelClass() &&
          first->getNumOperands() + fused->getNumOperands() <= mostSiblingOperands)
        merged = fuseSiblings(first, fused);
      first = merged ? merged : fused;
    }
  }

  FusedOp fuseSiblings(FusedOp first, FusedOp second) {
    for (Value out : second.getOuts())
      if (out.getDefiningOp() == first)
        return nullptr;
    std::optional<SmallVector<Operation*>> toMove = findOpsToMove(first, second);
    if (!toMove || !toMove->empty())
      return nullptr;
    SmallVector<unsigned> kept;
    for (OpResult result : first.getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation* user) { return user != second; }))
        kept.push_back(result.getResultNumber());
    AffineMap same = AffineMap::getMultiDimIdentityMap(first.getSpace().size(), first.getContext());
    std::string why;
    return replacePair(first, second, {SmallVector<int64_t>(first.getSpace()), same, same}, kept,
                       false, why);
  }
};

struct FuseKernels : impl::FuseKernelsBase<FuseKernels> {
  using FuseKernelsBase::FuseKernelsBase;

  void runOnOperation() override {
    Fuser fuser(&getContext(), maxOperands);
    SmallVector<Block*> blocks;
    getOperation().walk([&](Block* block) {
      if (!isa<FusedOp>(block->getParentOp()))
        blocks.push_back(block);
    });
    for (Block* block : blocks)
      fuser.run(*block);
  }
};

} // namespace
} // namespace titan
