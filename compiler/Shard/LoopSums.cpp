#include "compiler/Shard/LoopSums.h"

#include "compiler/Support/LoopChain.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace titan {

ir::Phase phaseOfSum(Value value, bool isTree) {
  Operation* source = sourceOf(value);
  const bool isLevel =
      isTree && value.getDefiningOp<accum::LoopOp>() && isa<FloatType>(getElementTypeOrSelf(value));
  return isLevel || (source && ir::getPhase(source) == ir::Phase::Backward) ? ir::Phase::Backward
                                                                            : ir::Phase::Update;
}

SmallVector<OpOperand*> readersBehindLoops(OpOperand& use) {
  OpOperand* yielded = &use;
  if (auto add = dyn_cast<ir::AddOp>(use.getOwner()); add && add->hasOneUse())
    yielded = &*add->use_begin();
  if (!isa<accum::YieldOp>(yielded->getOwner()))
    return {&use};
  SmallVector<OpOperand*> readers;
  const OpResult sum = yielded->getOwner()->getParentOp()->getResult(yielded->getOperandNumber());
  for (OpOperand& next : sum.getUses())
    llvm::append_range(readers, readersBehindLoops(next));
  return readers;
}

} // namespace titan
