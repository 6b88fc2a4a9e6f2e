// Lowering of constants, and of what holds gradients back. (titan.barrier has a pass of its own.)
#include "compiler/Lower/Rules.h"

using namespace mlir;

namespace titan::lower {

namespace {

struct Rules {
  static LogicalResult lower(ir::ConstantOp op, LoweringBuilder& l) {
    auto type = cast<RankedTensorType>(op.getType());
    auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
    if (!splat) {
      l.replace(kernel::ConstantOp::create(l.builder, l.loc, type, op.getValue(), IntegerAttr())
                    .getResult());
      return success();
    }
    l.replace(l.elementwise(type, {}, [&](Body& b, ValueRange) -> Value {
      Attribute value = splat.getSplatValue<Attribute>();
      if (auto real = dyn_cast<FloatAttr>(value))
        return b.constant(real);
      auto integer = cast<IntegerAttr>(value).getValue();
      return b.constant(
          b.builder.getIntegerAttr(b.builder.getIntegerType(integer.getBitWidth()), integer));
    }));
    return success();
  }
  static LogicalResult lower(ir::DetachOp op, LoweringBuilder& l) {
    l.replace(op.getOperand());
    return success();
  }
};

} // namespace

void attachStateRules(MLIRContext* context) {
  attachRules<Rules, ir::ConstantOp, ir::DetachOp>(context);
}

} // namespace titan::lower
