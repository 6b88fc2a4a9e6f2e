#include "compiler/Codegen/LabelClasses.h"

#include "dialects/Kernel/Kernel.h"

using namespace mlir;

namespace titan::codegen {
namespace {

/// The coordinate that `value` is, through changes of type.
kernel::IndexOp coordinateOf(Value value) {
  while (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  return value.getDefiningOp<kernel::IndexOp>();
}

int64_t classesInBody(kernel::FusedOp op, Value label) {
  int64_t classes = 0;
  for (Operation* user : label.getUsers()) {
    if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(user))
      classes = std::max(classes, classesInBody(op, user->getResult(0)));
    auto compare = dyn_cast<arith::CmpIOp>(user);
    if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
      continue;
    for (Value side : compare->getOperands())
      if (kernel::IndexOp index = coordinateOf(side))
        classes = std::max(classes, op.getSpace()[index.getDim()]);
  }
  return classes;
}

} // namespace

int64_t labelClasses(Value input) {
  if (!isa<IntegerType>(cast<ShapedType>(input.getType()).getElementType()))
    return 0;
  int64_t classes = 0;
  for (OpOperand& use : input.getUses()) {
    if (isa<kernel::SliceOp, kernel::CastShapeOp>(use.getOwner()))
      classes = std::max(classes, labelClasses(use.getOwner()->getResult(0)));
    if (auto fused = dyn_cast<kernel::FusedOp>(use.getOwner()))
      if (use.getOperandNumber() < fused.getIns().size())
        classes = std::max(
            classes, classesInBody(fused, fused.getBlock().getArgument(use.getOperandNumber())));
  }
  return classes;
}

} // namespace titan::codegen
