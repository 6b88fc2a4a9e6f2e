#include "compiler/Memory/Destinations.h"

#include "compiler/Memory/Liveness.h"

#include "dialects/Accum/Accum.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Kernel/Kernel.h"

using namespace mlir;

namespace titan::memory {

namespace {

/// The init that result number `result` of the loop continues; null if that is a stack.
OpOperand* accumulatedBy(accum::LoopOp loop, unsigned result) {
  MutableOperandRange inits = loop.getInitsMutable();
  return result < inits.size() ? &inits[result] : nullptr;
}

/// Does the op that makes `value` read `use`, one of its operands, no later than it writes there?
bool readsAlike(OpResult value, OpOperand& use) {
  if (auto loop = dyn_cast<accum::LoopOp>(value.getOwner()))
    return accumulatedBy(loop, value.getResultNumber()) == &use;
  auto command = dyn_cast<kernel::CommandLikeOpInterface>(value.getOwner());
  if (!command)
    return false;
  SmallVector<OpOperand*> writes = command.getWrites();
  return llvm::is_contained(writes, &use) || // the value that it continues
         command.walksAlike(use, *writes[value.getResultNumber()]);
}

/// The first op that writes where `value` will lie: of a collective its start.
Operation* firstWriterOf(OpResult value) {
  if (auto wait = dyn_cast<dist::WaitOp>(value.getOwner()))
    return wait.getStart();
  return value.getOwner();
}

/// May the op that makes `value` write into the slot's buffer, which still holds the old value?
bool mayWriteEarly(OpResult value, const Slot& slot) {
  Operation* writer = firstWriterOf(value);
  if (!isa<kernel::CommandLikeOpInterface, accum::LoopOp>(writer))
    return false;
  if (slot.isState && (isa<accum::LoopOp>(writer) || ir::getPhase(writer) != ir::Phase::Update))
    return false;
  if (!slot.old)
    return true;
  SmallVector<std::pair<Value, bool>> aliases = {{slot.old, true}};
  while (!aliases.empty()) {
    auto [alias, isItself] = aliases.pop_back_val();
    for (OpOperand& use : alias.getUses()) {
      Operation* user = use.getOwner();
      if (isView(user))
        aliases.push_back({user->getResult(0), false});
      Operation* ancestor = writer->getBlock()->findAncestorOpInBlock(*user);
      if (!ancestor || writer->isBeforeInBlock(ancestor))
        return false;
      if (ancestor == writer && !(user == writer && isItself && readsAlike(value, use)))
        return false;
    }
  }
  return true;
}

/// The operand that the op of `result` continues, reshapes or accumulates to; null if there is
/// none.
Value continuedBy(OpResult result) {
  Operation* op = result.getOwner();
  if (auto cast = dyn_cast<kernel::CastShapeOp>(op))
    return cast.getSource();
  if (auto command = dyn_cast<kernel::CommandLikeOpInterface>(op))
    return command.getWrites()[result.getResultNumber()]->get();
  if (auto loop = dyn_cast<accum::LoopOp>(op))
    if (OpOperand* init = accumulatedBy(loop, result.getResultNumber()))
      return init->get();
  return {};
}

} // namespace

void chooseDestinations(Block& block, ArrayRef<Exit> exits,
                        llvm::DenseMap<Value, Slot>& destinations) {
  auto offer = [&](Value value, const Slot& slot) {
    auto result = dyn_cast<OpResult>(value);
    if (!result || result.getOwner()->getBlock() != &block || destinations.contains(value))
      return;
    if (isa<kernel::CastShapeOp>(result.getOwner()) || mayWriteEarly(result, slot))
      destinations[value] = slot;
  };
  for (const Exit& exit : exits)
    offer(exit.value, exit.slot);
  // Backwards: a slot passes from a result to what it continues.
  for (Operation& op : llvm::reverse(block)) {
    for (OpResult result : op.getResults()) {
      auto found = destinations.find(result);
      if (found == destinations.end())
        continue;
      Slot slot = found->second;
      Value before = continuedBy(result);
      if (before && (before.hasOneUse() || isa<kernel::CastShapeOp>(op)))
        offer(before, slot);
    }
  }
}

} // namespace titan::memory
