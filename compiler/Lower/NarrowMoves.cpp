// titan-lower-narrow-moves: values are moved before they are widened.
#include "compiler/Lower/Passes.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Titan/Titan.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_NARROWMOVES
#include "compiler/Lower/Passes.h.inc"

namespace {

unsigned widthOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementTypeBitWidth();
}

/// The tensor that `value` is the wider form of, if it is one.
Value narrowForm(Value value) {
  auto convert = value.getDefiningOp<ir::ConvertOp>();
  if (!convert || widthOf(convert.getOperand()) >= widthOf(value))
    return {};
  return convert.getOperand();
}

struct NarrowMoves : impl::NarrowMovesBase<NarrowMoves> {
  void runOnOperation() override {
    SmallVector<Operation*> moves;
    getOperation().walk([&](Operation* op) {
      if (isa<ir::ReshapeOp, ir::TransposeOp, ir::SliceOp, ir::ReverseOp, ir::ConcatOp>(op))
        moves.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    bool isNarrowed = false;
    for (Operation* op : moves) { // in program order: what moves a moved value sees its new form
      SmallVector<Value> narrow;
      for (Value operand : op->getOperands())
        narrow.push_back(narrowForm(operand));
      Type element = narrow.front() ? getElementTypeOrSelf(narrow.front()) : Type();
      if (!element || !llvm::all_of(narrow, [&](Value value) {
            return value && getElementTypeOrSelf(value) == element;
          }))
        continue;
      rewriter.setInsertionPoint(op);
      auto type = cast<RankedTensorType>(op->getResult(0).getType());
      Operation* moved = rewriter.clone(*op);
      moved->setOperands(narrow);
      moved->getResult(0).setType(type.clone(element));
      SmallVector<Operation*> widened;
      for (Value operand : op->getOperands())
        widened.push_back(operand.getDefiningOp());
      Operation* convert = rewriter.clone(*widened.front());
      convert->setOperands(moved->getResult(0));
      convert->getResult(0).setType(type);
      rewriter.replaceOp(op, convert);
      for (Operation* operand : widened)
        if (operand->getBlock() && operand->use_empty() && llvm::count(widened, operand) == 1)
          rewriter.eraseOp(operand);
      isNarrowed = true;
    }
    if (!isNarrowed)
      return;
    // The narrow value may be moved already, for others.
    DominanceInfo dominance(getOperation());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
  }
};

} // namespace
} // namespace titan
