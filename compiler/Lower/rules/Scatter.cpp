// Lowering of titan.scatter and titan.top_k: where an element goes is no affine map, so they are
// routines.
#include "compiler/Lower/Rules.h"
#include "dialects/Titan/ResultTypes.h"
#include "dialects/Titan/ScatterShape.h"

using namespace mlir;

namespace titan::lower {

namespace {

/// The same numbers in elements of another float type.
Value inElements(LoweringBuilder& l, Value tensor, Type element) {
  return l.elementwise(tensorType(tensor).clone(element), tensor,
                       [](Body&, ValueRange values) { return values[0]; });
}

Value scatter(ir::ScatterOp op, LoweringBuilder& l, Value operand, Value updates,
              const ir::ScatterShape& shape) {
  auto routine = kernel::ScatterAttr::get(l.context, op.getKind(), shape.outer, shape.entries,
                                          shape.inner, shape.rows, shape.width,
                                          std::min(shape.width, l.machine.embeddingGradColumns));
  return kernel::CallOp::create(l.builder, l.loc, operand.getType(),
                                ValueRange{op.getIndices(), updates}, operand, ValueRange(),
                                routine, l.path, l.phase)
      .getResult(0);
}

struct Rules {
  static LogicalResult lower(ir::ScatterOp op, LoweringBuilder& l) {
    RankedTensorType type = op.getType();
    Value operand = op.getOperand(), updates = op.getUpdates();
    if (tensorType(updates).getNumElements() == 0 || type.getNumElements() == 0)
      return l.replace(operand), success();
    // Narrow floats are combined in f32.
    Type element = type.getElementType(), wide = element;
    if (isa<FloatType>(element) && op.getKind() != ir::ScatterKind::None)
      wide = ir::accumulationType(element);
    if (wide != element) {
      operand = inElements(l, operand, wide);
      updates = inElements(l, updates, wide);
    }
    const ir::ScatterShape shape = ir::shapeOf(op);
    Value result;
    // A card has sums of rows in sorted order alone.
    const bool isSorted =
        shape.outer * shape.rows * shape.inner >= l.machine.embeddingGradSortedRows;
    if (isSorted && isa<FloatType>(wide) && op.getKind() == ir::ScatterKind::Add)
      result = addRows(l, updates, op.getIndices(), operand, tensorType(operand), shape);
    else
      result = scatter(op, l, operand, updates, shape);
    l.replace(wide == element ? result : inElements(l, result, element));
    return success();
  }

  static LogicalResult lower(ir::TopKOp op, LoweringBuilder& l) {
    RankedTensorType type = tensorType(op.getOperand()), values = tensorType(op.getValues()),
                     indices = tensorType(op.getIndices());
    const int64_t length = type.getShape().back(), rows = type.getNumElements() / length;
    if (length > kernel::TopKAttr::mostLength)
      return l.refuse("it sorts " + Twine(length) + " elements, more than the " +
                      Twine(kernel::TopKAttr::mostLength) + " that one thread can");
    auto routine =
        kernel::TopKAttr::get(l.context, rows, length, values.getShape().back(), op.getSmallest());
    l.replace(kernel::CallOp::create(l.builder, l.loc, TypeRange{values, indices}, op.getOperand(),
                                     ValueRange{l.empty(values), l.empty(indices)}, ValueRange(),
                                     routine, l.path, l.phase)
                  .getResults());
    return success();
  }
};

} // namespace

void attachScatterRules(MLIRContext* context) {
  attachRules<Rules, ir::ScatterOp, ir::TopKOp>(context);
}

} // namespace titan::lower
