#include "compiler/Schedule/Postponer.h"

#include "compiler/Schedule/OpCosts.h"
#include "compiler/Support/Collectives.h"

using namespace mlir;

namespace titan::schedule {

namespace {

/// Constants and empty tensors have no place in time.
bool hasNoPlace(Operation& op) {
  return isa<ir::ConstantOp, arith::ConstantOp, kernel::EmptyOp, dist::CoordinateOp>(op);
}

/// May `op` stand behind others that do not read it? What takes a summed gradient, and collectives;
/// of the update, whose ops read each other, what shows gathered values.
bool mayBePutOff(Operation* op) {
  if (isCollective(op) || isView(op) || isa<ir::SliceOp>(op))
    return true;
  return ir::getPhase(op) == ir::Phase::Backward &&
         (isPointwise(op) || isa<ir::ReduceOp, ir::PadOp>(op));
}

} // namespace

bool Postponer::readsMissing(Operation* op) const {
  return op
      ->walk([&](Operation* inner) {
        return llvm::any_of(inner->getOperands(), [&](Value v) { return missing_.contains(v); })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

void Postponer::run(Block& block) {
  SmallVector<Operation*> ops;
  for (Operation& op : block)
    if (!hasNoPlace(op))
      ops.push_back(&op);
  bool updates = false;
  for (auto [i, op] : llvm::enumerate(ops)) {
    const bool begins = !updates && ir::getPhase(op) == ir::Phase::Update;
    updates |= begins;
    if (begins || op->hasTrait<OpTrait::IsTerminator>())
      while (release(op))
        ;
    if (readsMissing(op) && mayBePutOff(op)) {
      putOff_.insert(op);
      holdBack(op->getResults());
      continue;
    }
    while (readsMissing(op))
      if (!release(op))
        llvm_unreachable("what is missing is held back");
    if (i + 1 < ops.size())
      take(op, ops[i + 1]);
  }
}

void Postponer::holdBack(ValueRange results) { missing_.insert_range(results); }

void Postponer::give(ValueRange results, Operation* next) {
  for (Value result : results)
    missing_.erase(result);
  // Taking one may give, or hold back, others: they have their turn in the order of all.
  if (gives_)
    return;
  gives_ = true;
  for (;;) {
    auto ready = llvm::find_if(putOff_, [&](Operation* op) { return !readsMissing(op); });
    if (ready == putOff_.end())
      break;
    Operation* op = *ready;
    putOff_.erase(ready);
    op->moveBefore(next);
    for (Value result : op->getResults())
      missing_.erase(result);
    take(op, next);
  }
  gives_ = false;
}

} // namespace titan::schedule
