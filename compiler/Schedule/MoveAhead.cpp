#include "compiler/Schedule/MoveAhead.h"

#include "compiler/Schedule/OpCosts.h"
#include "compiler/Support/Collectives.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace titan::schedule {

namespace {

/// Does moving `op` cost nothing but its result?
bool isLight(Operation* op) {
  return isView(op) || isPointwise(op) ||
         isa<ir::TransposeOp, ir::PadOp, ir::ConstantOp, kernel::EmptyOp, arith::ConstantOp>(op);
}

bool isReadElsewhere(Operation* op, const llvm::SetVector<Operation*>& along) {
  return !isa<ir::ConstantOp, kernel::EmptyOp>(op) &&
         llvm::any_of(op->getUsers(), [&](Operation* user) {
           return !isCollective(user) && !along.contains(user);
         });
}

} // namespace

Lead leadOf(Operation* op, bool ownOnly) {
  Lead lead;
  llvm::SetVector<Operation*> along;
  SmallVector<Value> open(op->getOperands());
  while (!open.empty()) {
    Operation* source = open.pop_back_val().getDefiningOp();
    if (!source || source->getBlock() != op->getBlock() || along.contains(source))
      continue;
    if (isLight(source) && !(ownOnly && isReadElsewhere(source, along))) {
      along.insert(source);
      llvm::append_range(open, source->getOperands());
    } else if (!lead.behind || lead.behind->isBeforeInBlock(source)) {
      lead.behind = source;
    }
  }
  lead.along = along.takeVector();
  llvm::sort(lead.along, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
  return lead;
}

void moveAhead(Operation* op, const Lead& lead, Operation* place) {
  while (llvm::is_contained(lead.along, place))
    place = place->getNextNode();
  for (Operation* each : lead.along)
    if (place->isBeforeInBlock(each))
      each->moveBefore(place);
  if (place->isBeforeInBlock(op))
    op->moveBefore(place);
}

} // namespace titan::schedule
