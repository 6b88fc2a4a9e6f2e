#include "compiler/Lower/OperandRounding.h"

using namespace mlir;
using titan::kernel::FusedOp;

namespace titan::lower {
namespace {

Type elementOf(Value value) { return cast<ShapedType>(value.getType()).getElementType(); }

ArrayRef<int64_t> shapeOf(Value value) { return cast<ShapedType>(value.getType()).getShape(); }

/// Does `op` round its only operand, every element of it, and nothing else?
bool onlyRounds(FusedOp op) {
  if (op.getIns().size() != 1 || op.getOuts().size() != 1 || op->getNumResults() != 1 ||
      !op.getInMap(0).isIdentity() || !op.getOutMap(0).isIdentity() ||
      shapeOf(op.getIns()[0]) != op.getSpace() || shapeOf(op.getOuts()[0]) != op.getSpace() ||
      !elementOf(op.getIns()[0]).isF32() || !elementOf(op.getOuts()[0]).isBF16())
    return false;
  Value yielded = cast<kernel::YieldOp>(op.getBlock().getTerminator()).getValues()[0];
  auto rounding = yielded.getDefiningOp<arith::TruncFOp>();
  return rounding && rounding.getIn() == op.getBlock().getArgument(0);
}

} // namespace

bool absorbOperandRounding(RewriterBase& rewriter, FusedOp cast, int64_t mostTileRows) {
  if (!onlyRounds(cast) || cast->use_empty())
    return false;
  for (OpOperand& use : cast->getUses()) {
    auto call = dyn_cast<kernel::CallOp>(use.getOwner());
    kernel::GemmAttr gemm = call ? call.getGemm() : kernel::GemmAttr();
    if (!gemm || use.getOperandNumber() != 1 || call->getBlock() != cast->getBlock() ||
        !elementOf(call.getOuts()[0]).isBF16() ||
        llvm::divideCeilSigned(gemm.getM(), gemm.getTileM()) > mostTileRows)
      return false;
  }
  rewriter.replaceAllUsesWith(cast.getResult(0), cast.getIns()[0]);
  rewriter.eraseOp(cast);
  return true;
}

} // namespace titan::lower
