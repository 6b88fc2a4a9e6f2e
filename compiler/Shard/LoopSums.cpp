#include "compiler/Shard/LoopSums.h"

using namespace mlir;

namespace titan {

Operation* sourceOf(Value value) {
  Operation* op = value.getDefiningOp();
  while (auto loop = dyn_cast_if_present<accum::LoopOp>(op)) {
    value = loop.getYieldedSums()[cast<OpResult>(value).getResultNumber()];
    op = value.getDefiningOp();
  }
  return op;
}

ir::Phase phaseOfSum(Value value) {
  Operation* source = sourceOf(value);
  return source && ir::getPhase(source) == ir::Phase::Backward ? ir::Phase::Backward
                                                               : ir::Phase::Update;
}

SmallVector<OpOperand*> readersBehindLoops(OpOperand& use) {
  auto add = dyn_cast<ir::AddOp>(use.getOwner());
  auto loop = add ? dyn_cast<accum::LoopOp>(add->getParentOp()) : accum::LoopOp();
  if (!loop || !add->hasOneUse() || !isa<accum::YieldOp>(*add->user_begin()))
    return {&use};
  SmallVector<OpOperand*> readers;
  const unsigned result = add->use_begin()->getOperandNumber();
  for (OpOperand& next : loop->getResult(result).getUses())
    llvm::append_range(readers, readersBehindLoops(next));
  return readers;
}

} // namespace titan
