#include "compiler/Codegen/kernel/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace titan::codegen {

SmallVector<Value> emitLoop(OpBuilder& builder, Location loc, Value low, Value high, int64_t step,
                            ValueRange carried, LoopBody body) {
  APInt first, last;
  if (matchPattern(low, m_ConstantInt(&first)) && matchPattern(high, m_ConstantInt(&last))) {
    int64_t distance = last.getSExtValue() - first.getSExtValue();
    if (distance <= 0)
      return SmallVector<Value>(carried);
    if (distance <= step)
      return body(low, carried);
  }
  Value stepValue = arith::ConstantIndexOp::create(builder, loc, step);
  auto loop = scf::ForOp::create(builder, loc, low, high, stepValue, carried,
                                 [&](OpBuilder&, Location, Value induction, ValueRange values) {
                                   scf::YieldOp::create(builder, loc, body(induction, values));
                                 });
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> emitIf(OpBuilder& builder, Location loc, Value condition, ValueRange carried,
                          llvm::function_ref<SmallVector<Value>()> then) {
  APInt known;
  if (matchPattern(condition, m_ConstantInt(&known)) && known.isOne())
    return then();
  auto branch = scf::IfOp::create(
      builder, loc, condition,
      [&](OpBuilder&, Location) { scf::YieldOp::create(builder, loc, then()); },
      [&](OpBuilder&, Location) { scf::YieldOp::create(builder, loc, carried); });
  return SmallVector<Value>(branch.getResults());
}

} // namespace titan::codegen
