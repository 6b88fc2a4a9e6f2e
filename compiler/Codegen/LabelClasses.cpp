#include "compiler/Codegen/LabelClasses.h"

#include "compiler/Memory/Liveness.h"
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

/// Follows a label from the input on: into views, kernel bodies, and buffers that a body passes it
/// on to.
class Labels {
public:
  int64_t inBuffer(Value buffer) {
    int64_t classes = 0;
    if (!seen_.insert(buffer).second)
      return classes;
    for (OpOperand& use : buffer.getUses()) {
      if (memory::isView(use.getOwner()))
        classes = std::max(classes, inBuffer(use.getOwner()->getResult(0)));
      if (auto call = dyn_cast<kernel::CallOp>(use.getOwner()))
        classes = std::max(classes, entriesOf(call.getRoutine(), use.getOperandNumber()));
      if (auto fused = dyn_cast<kernel::FusedOp>(use.getOwner()))
        if (use.getOperandNumber() < fused.getIns().size())
          classes = std::max(classes,
                             inBody(fused, fused.getBlock().getArgument(use.getOperandNumber())));
    }
    return classes;
  }

private:
  /// The rows of a table, or the places along a dimension, that operand number `operand` chooses
  /// from.
  static int64_t entriesOf(kernel::RoutineAttrInterface routine, unsigned operand) {
    if (auto embedding = dyn_cast<kernel::EmbeddingAttr>(routine); embedding && operand == 1)
      return embedding.getEntries();
    if (auto scatter = dyn_cast<kernel::ScatterAttr>(routine); scatter && operand == 0)
      return scatter.getEntries();
    return 0;
  }

  int64_t inBody(kernel::FusedOp op, Value label) {
    int64_t classes = 0;
    for (OpOperand& use : label.getUses()) {
      Operation* user = use.getOwner();
      // In a select it is a value, not the condition: eval puts ignore_index into rows that are
      // padding.
      if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::SelectOp>(
              user))
        classes = std::max(classes, inBody(op, user->getResult(0)));
      else if (isa<kernel::YieldOp>(user))
        classes = std::max(classes, inBuffer(op.getOuts()[use.getOperandNumber()]));
      auto compare = dyn_cast<arith::CmpIOp>(user);
      if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
        continue;
      for (Value side : compare->getOperands())
        if (kernel::IndexOp index = coordinateOf(side))
          classes = std::max(classes, op.getSpace()[index.getDim()]);
    }
    return classes;
  }

  llvm::DenseSet<Value> seen_;
};

} // namespace

int64_t labelClasses(Value input) {
  if (!isa<IntegerType>(cast<ShapedType>(input.getType()).getElementType()))
    return 0;
  return Labels().inBuffer(input);
}

} // namespace titan::codegen
