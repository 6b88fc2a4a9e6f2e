#include "compiler/Lower/KernelPair.h"

#include "compiler/Lower/Address.h"
#include "compiler/Lower/KernelMerge.h"
#include "compiler/Support/Collectives.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using titan::kernel::FusedOp;

namespace titan::lower {

bool areRemarksRead(Operation* op) { return op->getContext()->getRemarkEngine() != nullptr; }

FusedOp producerOf(Value in) { return sourceOf(in).getDefiningOp<FusedOp>(); }

bool isReadBesides(Value value, ArrayRef<Operation*> readers) {
  return llvm::any_of(value.getUsers(), [&](Operation* user) {
    if (auto view = dyn_cast<kernel::CastShapeOp>(user))
      return isReadBesides(view, readers);
    return !llvm::is_contained(readers, user);
  });
}

static bool reads(FusedOp reader, Operation* op) {
  return llvm::any_of(reader->getOperands(),
                      [&](Value operand) { return operand.getDefiningOp() == op; });
}

std::optional<SmallVector<Operation*>> findOpsToMove(BlockOrder& order, FusedOp producer,
                                                     FusedOp consumer,
                                                     llvm::function_ref<bool(Operation*)> mayMove) {
  Block* block = producer->getBlock();
  SmallVector<Operation*> pending = {producer};
  llvm::SetVector<Operation*> dependent;
  llvm::SmallPtrSet<Operation*, 8> views = {producer};
  while (!pending.empty()) {
    Operation* op = pending.pop_back_val();
    for (Operation* user : op->getUsers()) {
      Operation* place = block->findAncestorOpInBlock(*user);
      if (!place || !order.isBefore(place, consumer) || !dependent.insert(place))
        continue;
      if (!mayMove(place))
        return std::nullopt;
      if (isa<kernel::CastShapeOp>(place) && views.contains(op))
        views.insert(place);
      else if (reads(consumer, place))
        return std::nullopt;
      pending.push_back(place);
    }
  }
  SmallVector<Operation*> ordered = dependent.takeVector();
  llvm::sort(ordered, [&](Operation* a, Operation* b) { return order.isBefore(a, b); });
  return ordered;
}

bool moveBehind(PairRewriter& rewriter, FusedOp first, FusedOp second) {
  if (isCollectiveBetween(first, second))
    return false;
  SmallVector<Operation*> along;
  std::function<bool(Value)> isThere = [&](Value value) {
    Operation* definition = value.getDefiningOp();
    if (!definition || definition->getBlock() != first->getBlock() ||
        rewriter.order.isBefore(definition, first) || llvm::is_contained(along, definition))
      return true;
    if (!isa<kernel::EmptyOp, kernel::CastShapeOp>(definition) ||
        !llvm::all_of(definition->getOperands(), isThere))
      return false;
    along.push_back(definition);
    return true;
  };
  if (!llvm::all_of(second->getOperands(), isThere))
    return false;
  for (Operation* op : along)
    rewriter.moveOpBefore(op, first);
  rewriter.moveOpAfter(second, first);
  return true;
}

namespace {

/// Erases what shows the results of `of` in another shape to nobody.
void eraseUnusedViews(RewriterBase& rewriter, Operation* of) {
  for (Operation* user : llvm::make_early_inc_range(of->getUsers()))
    if (isa<kernel::CastShapeOp>(user)) {
      eraseUnusedViews(rewriter, user);
      if (user->use_empty())
        rewriter.eraseOp(user);
    }
}

} // namespace

FusedOp replacePair(PairRewriter& rewriter, KernelPair& pair, FusedOp producer, FusedOp consumer,
                    const MergedSpace& space, ArrayRef<unsigned> kept, bool keepProducer,
                    std::string& why) {
  bool producerIsRead =
      llvm::any_of(consumer.getIns(), [&](Value in) { return producerOf(in) == producer; });
  // What *schedule* put before a start or behind a wait stays there. What reads nothing has no
  // place, unless others wait for it.
  const bool hasPlace = !producer.getIns().empty() || !kept.empty();
  if (hasPlace && isCollectiveBetween(producer, consumer)) {
    why = "a collective starts or is awaited between the two";
    if (!producerIsRead && areRemarksRead(consumer))
      remark::missed(consumer.getLoc(), remark::RemarkOpts::name("fuse-kernels").category("lower"))
          << remark::add("'{0}' does not run together with '{1}'", ir::describePlace(producer),
                         ir::describePlace(consumer))
          << remark::reason("{0}", why);
    return nullptr;
  }
  if (StringRef reason = findReasonApart(rewriter, pair, producer, consumer, space);
      !reason.empty()) {
    why = reason.str();
    return nullptr;
  }
  // Nothing moves behind the update: a run that waits there for a snapshot would hold it up.
  auto isUpdate = [](Operation* op) { return ir::getPhase(op) == ir::Phase::Update; };
  bool isEarlier = false;
  auto mayMove = [&](Operation* op) {
    isEarlier = (isUpdate(producer) || isUpdate(consumer)) && !isUpdate(op);
    return !isEarlier;
  };
  std::optional<SmallVector<Operation*>> toMove = SmallVector<Operation*>();
  if (!kept.empty())
    toMove = findOpsToMove(rewriter.order, producer, consumer, mayMove);
  if (!toMove) {
    why = isEarlier ? "what else reads its result belongs to an earlier phase"
                    : "the reader also needs something made from it";
    return nullptr;
  }
  FailureOr<FusedOp> merged = buildMerged(rewriter, pair, producer, consumer, space, kept, why);
  if (failed(merged))
    return nullptr;
  if (areRemarksRead(consumer))
    remark::passed(merged->getLoc(), remark::RemarkOpts::name("fuse-kernels").category("lower"))
        << (producerIsRead ? remark::add("'{0}' is computed inside of '{1}'",
                                         ir::describePlace(producer), ir::describePlace(consumer))
                           : remark::add("'{0}' runs together with '{1}'",
                                         ir::describePlace(producer), ir::describePlace(consumer)));

  Operation* after = *merged;
  for (Operation* op : *toMove) {
    rewriter.moveOpAfter(op, after);
    after = op;
  }
  unsigned own = consumer.getNumResults();
  rewriter.replaceOp(consumer, merged->getResults().take_front(own));
  eraseUnusedViews(rewriter, producer);
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

FusedOp fuseIndependent(PairRewriter& rewriter, FusedOp first, FusedOp second,
                        const MergedSpace& space) {
  if (!visitsWholeSpace(space, first) || !readsAtSamePoint(space, first, second) ||
      llvm::any_of(second.getOuts(), [&](Value out) { return producerOf(out) == first; }))
    return nullptr;
  SmallVector<unsigned> kept;
  for (OpResult result : first.getResults())
    if (isReadBesides(result, {second}))
      kept.push_back(result.getResultNumber());
  std::string why;
  return replacePair(rewriter, rewriter.pairOf(first, second), first, second, space, kept,
                     /*keepProducer=*/false, why);
}

} // namespace titan::lower
