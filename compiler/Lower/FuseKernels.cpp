// titan-lower-fuse-kernels: evaluates producers inside of the kernels that read them.
#include "compiler/Lower/Address.h"
#include "compiler/Lower/CombineKernels.h"
#include "compiler/Lower/FusionCost.h"
#include "compiler/Lower/KernelMerge.h"
#include "compiler/Lower/KernelPair.h"
#include "compiler/Lower/Passes.h"
#include "compiler/Support/TargetInfo.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/IntEqClasses.h"

using namespace mlir;
using titan::kernel::FusedOp;

namespace titan {

#define GEN_PASS_DEF_FUSEKERNELS
#include "compiler/Lower/Passes.h.inc"

namespace {

constexpr unsigned mostSiblingOperands = 48;
/// Of a kernel that goes over its points once; the addresses of more leave no registers.
constexpr unsigned mostSweepOperands = 48;
/// Ops that may wait for a kernel that reads the same operand.
constexpr unsigned mostOpsToMove = 16;

class Fuser {
public:
  Fuser(MLIRContext* context, unsigned maxOperands, const MachineModel& machine)
      : rewriter(context), maxOperands(maxOperands), smallKernel(machine.smallKernelPoints),
        smallSiblings(machine.smallSiblings), mostColumnSums(machine.columnSums) {}

  /// Before it is copied, a kernel becomes one with those that equal it.
  void combineEqual(Block& block) { lower::combineEqual(rewriter, rewriter.kernels, block); }

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
    fuseSharedReads(block);
    fuseSmallSiblings(block);
    for (Operation& op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isa<kernel::EmptyOp, kernel::CastShapeOp>(op) && op.use_empty())
        rewriter.eraseOp(&op);
    for (FusedOp op : block.getOps<FusedOp>())
      rewriter.kernels.fill(op);
  }

private:
  lower::PairRewriter rewriter;
  unsigned maxOperands;
  int64_t smallKernel;    ///< points up to which a launch costs more than the work
  int64_t smallSiblings;  ///< that run together whatever operands they have
  int64_t mostColumnSums; ///< elements (`columnSumsOf`)

  const lower::KernelFacts& factsOf(FusedOp op) { return rewriter.kernels.factsOf(op); }
  bool isDuplicable(FusedOp op) { return lower::isDuplicable(op, factsOf(op)); }
  int64_t columnSumsOf(FusedOp first, FusedOp second) {
    return lower::columnSumsOf(factsOf(first), factsOf(second));
  }

  void fuseProducersInto(FusedOp consumer) {
    SmallVector<std::pair<FusedOp, std::string>> missed;
    for (bool changed = true; changed;) {
      changed = false;
      missed.clear();
      for (Value in : consumer.getIns()) {
        FusedOp producer = lower::producerOf(in);
        // Into a loop's body only copies go: the kernel before the loop runs once.
        if (!producer || (producer->getBlock() != consumer->getBlock() && !isDuplicable(producer)))
          continue;
        if (llvm::is_contained(llvm::make_first_range(missed), producer))
          continue; // it gives several operands
        std::string why;
        if (FusedOp merged = fuse(producer, consumer, why)) {
          consumer = merged;
          changed = true;
          break;
        }
        missed.push_back({producer, why});
      }
    }
    if (lower::areRemarksRead(consumer))
      for (auto& [producer, why] : missed)
        report(producer, consumer, why);
  }

  void report(FusedOp producer, FusedOp consumer, StringRef why) {
    remark::missed(consumer.getLoc(), remark::RemarkOpts::name("fuse-kernels").category("lower"))
        << remark::add("'{0}' keeps apart from '{1}'", ir::describePlace(producer),
                       ir::describePlace(consumer))
        << remark::reason("{0}", why.str());
  }

  /// Would one kernel of the two, which writes `outs` operands, have too many? In one sweep, what
  /// is one element for all points is read once.
  bool hasTooMany(FusedOp first, FusedOp second, size_t outs) {
    const bool isOneSweep = first.getKernelClass() == kernel::KernelClass::Flat &&
                            second.getKernelClass() == kernel::KernelClass::Flat &&
                            lower::pointsOf(first.getSpace()) == lower::pointsOf(second.getSpace());
    const size_t all = first.getIns().size() + second.getIns().size() + outs;
    if (!isOneSweep)
      return all > maxOperands;
    return factsOf(first).streams + factsOf(second).streams + outs > maxOperands ||
           all > mostSweepOperands;
  }

  FusedOp fuse(FusedOp producer, FusedOp consumer, std::string& why) {
    lower::KernelPair& pair = rewriter.pairOf(producer, consumer);
    for (const lower::KnownSpace& space : lower::findKnownSpaces(pair, producer, consumer, why))
      if (FusedOp merged = fuseIn(pair, space, producer, consumer, why))
        return merged;
    return nullptr;
  }

  FusedOp fuseIn(lower::KernelPair& pair, const lower::KnownSpace& known, FusedOp producer,
                 FusedOp consumer, std::string& why) {
    const bool repeats = known.repeatsWork, cheap = factsOf(producer).isCheap;
    if (repeats && !cheap) {
      why = "it would be computed again and again";
      return nullptr;
    }
    if (repeats && producer.getKernelClass() == kernel::KernelClass::Transpose) {
      why = "its elements would be gathered again and again";
      return nullptr;
    }
    if (!cheap && lower::repeatsScalars(consumer, factsOf(consumer))) {
      why = "the reader only repeats it, for readers of its own";
      return nullptr;
    }
    if (factsOf(producer).roundsVector && consumer.getSpace().size() > 1) {
      why = "each of the reader's rows would round the vector again";
      return nullptr;
    }
    if (repeats && known.repeatsAlongShortRows) {
      why = "the reader's rows would be cut into those along which it repeats elements";
      return nullptr;
    }
    // A strided read is worth one operand's detour, not several.
    if (consumer.getKernelClass() == kernel::KernelClass::Transpose &&
        producer.getIns().size() > 1) {
      why = "the reader transposes it";
      return nullptr;
    }
    if (columnSumsOf(producer, consumer) > mostColumnSums) {
      why = "the sums of so long rows' columns cannot be held";
      return nullptr;
    }
    const bool duplicable = isDuplicable(producer);
    SmallVector<unsigned> kept;
    bool othersRead = false;
    for (OpResult result : producer.getResults())
      if (lower::isReadBesides(result, {consumer})) {
        othersRead = true;
        kept.push_back(result.getResultNumber());
      }
    // What the forward pass stores for others is read again in the backward pass, rather than
    // another result kept alive until then.
    if (ir::getPhase(producer) == ir::Phase::Forward &&
        ir::getPhase(consumer) == ir::Phase::Backward && othersRead && !duplicable) {
      why = "its result is stored anyway";
      return nullptr;
    }
    bool duplicate = duplicable && (othersRead || producer->getBlock() != consumer->getBlock());
    if (duplicate)
      kept.clear();
    if (!kept.empty() && repeats) {
      why = "others read its result, which would be written again and again";
      return nullptr;
    }
    // Rows and columns would gather their elements one by one; what only moves walks as it likes.
    if (!kept.empty() && producer.getKernelClass() == kernel::KernelClass::Transpose &&
        lower::isForReductions(consumer)) {
      why = "it transposes what is stored anyway";
      return nullptr;
    }
    if (!kept.empty() && !known.visitsWholeSpace) {
      why = "others read its result, which the reader does not cover";
      return nullptr;
    }
    if (hasTooMany(producer, consumer, consumer.getOuts().size() + kept.size())) {
      why = "the merged kernel would have too many operands";
      return nullptr;
    }
    return lower::replacePair(rewriter, pair, producer, consumer, known.space, kept,
                              /*keepProducer=*/duplicate, why);
  }

  /// Kernels that read one large operand at the same elements read it once, together: the gradients
  /// of a norm's operand and of its parameters, a loss and its gradient.
  void fuseSharedReads(Block& block) {
    // Kernels by number, and no values of merged ones: what is erased leaves addresses behind that
    // new ops and their results get.
    SmallVector<FusedOp> kernels(block.getOps<FusedOp>());
    llvm::IntEqClasses merged(kernels.size());
    llvm::DenseMap<Value, unsigned> lastReader;
    for (unsigned number = 0; number < kernels.size(); ++number) {
      for (bool changed = true; changed;) {
        changed = false;
        FusedOp kernel = kernels[merged.findLeader(number)];
        for (Value in : kernel.getIns()) {
          Value source = lower::sourceOf(in);
          auto found = lastReader.find(source);
          if (found == lastReader.end() ||
              cast<ShapedType>(source.getType()).getNumElements() <= smallKernel)
            continue;
          unsigned earlier = merged.findLeader(found->second);
          if (earlier == merged.findLeader(number))
            continue;
          SmallVector<Value> replaced(kernels[earlier]->getResults());
          llvm::append_range(replaced, kernel->getResults());
          if (FusedOp both = fuseReaders(kernels[earlier], kernel, source)) {
            for (Value value : replaced)
              lastReader.erase(value);
            kernels[merged.join(earlier, number)] = both;
            changed = true;
            break;
          }
        }
      }
      for (Value in : kernels[merged.findLeader(number)].getIns())
        lastReader[lower::sourceOf(in)] = number;
    }
  }

  FusedOp fuseReaders(FusedOp first, FusedOp second, Value value) {
    // A kernel that moved up to another one stands before those that were between the two.
    if (rewriter.order.isBefore(second, first))
      std::swap(first, second);
    if (hasTooMany(first, second, first.getOuts().size() + second.getOuts().size()) ||
        columnSumsOf(first, second) > mostColumnSums)
      return nullptr;
    std::optional<lower::MergedSpace> space = lower::findSharedSpace(first, second, value);
    if (!space)
      return nullptr;
    int64_t points = lower::pointsOf(space->extents);
    if (points != lower::pointsOf(first.getSpace()) || points != lower::pointsOf(second.getSpace()))
      return nullptr;
    // Across phases only where nobody else reads the value: the second's results, which would exist
    // from the first on, may then take its place. The update stays by itself: it writes states.
    if (ir::getPhase(first) != ir::getPhase(second) &&
        (ir::getPhase(second) == ir::Phase::Update || ir::getPhase(first) == ir::Phase::Update ||
         lower::isReadBesides(value, {first, second})))
      return nullptr;
    unsigned toMove = 0;
    auto mayMove = [&](Operation*) { return ++toMove <= mostOpsToMove; };
    if (!lower::moveBehind(rewriter, first, second) &&
        !lower::findOpsToMove(rewriter.order, first, second, mayMove))
      return nullptr;
    return lower::fuseIndependent(rewriter, first, second, *space);
  }

  /// Small kernels cost their launch and little else: independent ones over one space run together,
  /// where nothing between the two has to move.
  void fuseSmallSiblings(Block& block) {
    struct Siblings {
      FusedOp kernel;
      int64_t count = 0;
    };
    llvm::MapVector<Attribute, Siblings> last; // by space
    // All of them first: a merge erases views too, and a walk would go on from an erased one.
    SmallVector<FusedOp> kernels(block.getOps<FusedOp>());
    for (FusedOp fused : kernels) {
      const int64_t points = lower::pointsOf(fused.getSpace());
      if (points > smallKernel)
        continue;
      Siblings& siblings = last[fused.getSpaceAttr()];
      FusedOp first = siblings.kernel, merged;
      if (first && first.getKernelClass() == fused.getKernelClass() &&
          ((points > 1 && siblings.count < smallSiblings) ||
           first->getNumOperands() + fused->getNumOperands() <= mostSiblingOperands))
        merged = fuseSiblings(first, fused);
      siblings = merged ? Siblings{merged, siblings.count + 1} : Siblings{fused, 1};
    }
  }

  FusedOp fuseSiblings(FusedOp first, FusedOp second) {
    if (columnSumsOf(first, second) > mostColumnSums)
      return nullptr;
    auto mayMove = [](Operation*) { return false; };
    if (!lower::findOpsToMove(rewriter.order, first, second, mayMove))
      return nullptr;
    AffineMap same = AffineMap::getMultiDimIdentityMap(first.getSpace().size(), first.getContext());
    return lower::fuseIndependent(rewriter, first, second,
                                  {SmallVector<int64_t>(first.getSpace()), same, same});
  }
};

struct FuseKernels : impl::FuseKernelsBase<FuseKernels> {
  using FuseKernelsBase::FuseKernelsBase;

  void runOnOperation() override {
    FailureOr<MachineModel> machine = getMachine(getOperation());
    if (failed(machine))
      return signalPassFailure();
    Fuser fuser(&getContext(), maxOperands, *machine);
    fuser.combineEqual(getOperation().getBody().front());
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
