// Lowering of titan.embedding and its gradient and of titan.gather: rows found by an index are no
// affine map, so they are routines.
#include "compiler/Lower/Rules.h"
#include "dialects/Titan/ScatterShape.h"

using namespace mlir;

namespace titan::lower {

namespace {

/// Elements of `type` from dimension `first` on.
int64_t elementsFrom(RankedTensorType type, int64_t first) {
  int64_t elements = 1;
  for (int64_t extent : type.getShape().drop_front(first))
    elements *= extent;
  return elements;
}

/// The first result; the others are workspace.
Value call(LoweringBuilder& l, ValueRange ins, ValueRange outs,
           kernel::RoutineAttrInterface routine) {
  return kernel::CallOp::create(l.builder, l.loc, outs.getTypes(), ins, outs, ValueRange(), routine,
                                l.path, l.phase)
      .getResult(0);
}

Value zeros(LoweringBuilder& l, RankedTensorType type) {
  return l.elementwise(type, {}, [&](Body& b, ValueRange) {
    return b.constant(Body::computeType(type.getElementType()), 0);
  });
}

} // namespace

Value addRows(LoweringBuilder& l, Value terms, Value indices, Value acc, RankedTensorType type,
              const ir::ScatterShape& shape, int64_t padding) {
  const bool sorted = shape.outer * shape.rows * shape.inner >= l.machine.embeddingGradSortedRows;
  auto routine = kernel::EmbeddingGradAttr::get(
      l.context, shape.rows, shape.entries, shape.width, /*accumulate=*/acc != nullptr,
      std::min(shape.width, l.machine.embeddingGradColumns), padding, sorted, shape.outer,
      shape.inner);
  SmallVector<Value> outs = {acc ? acc : l.empty(type)};
  if (sorted) {
    outs.push_back(
        l.empty(RankedTensorType::get({routine.getOrderElements()}, l.builder.getI32Type())));
    outs.push_back(
        l.empty(RankedTensorType::get({routine.getSumElements()}, type.getElementType())));
  }
  return call(l, {terms, indices}, outs, routine);
}

namespace {

struct Rules {
  static LogicalResult lower(ir::EmbeddingOp op, LoweringBuilder& l) {
    RankedTensorType table = tensorType(op.getTable()), type = op.getType();
    int64_t rows = tensorType(op.getIndices()).getNumElements();
    int64_t entries = table.getDimSize(0), width = elementsFrom(table, 1);
    if (rows * width == 0)
      return l.replace(l.empty(type)), success();
    if (entries == 0)
      return l.refuse("its table has no rows");
    l.replace(call(
        l, {op.getTable(), op.getIndices()}, l.empty(type),
        kernel::EmbeddingAttr::get(l.context, rows, entries, width, /*outer=*/1, /*inner=*/1)));
    return success();
  }

  static LogicalResult lower(ir::GatherOp op, LoweringBuilder& l) {
    RankedTensorType type = op.getType();
    if (type.getNumElements() == 0)
      return l.replace(l.empty(type)), success();
    const ir::ScatterShape shape = ir::shapeOf(op);
    if (shape.entries == 0)
      return l.refuse("its operand has no elements");
    l.replace(call(l, {op.getOperand(), op.getIndices()}, l.empty(type),
                   kernel::EmbeddingAttr::get(l.context, shape.rows, shape.entries, shape.width,
                                              shape.outer, shape.inner)));
    return success();
  }

  static LogicalResult lower(ir::EmbeddingGradOp op, LoweringBuilder& l) {
    RankedTensorType type = op.getType();
    const ir::ScatterShape shape = {.entries = type.getDimSize(0),
                                    .rows = tensorType(op.getIndices()).getNumElements(),
                                    .width = elementsFrom(type, 1)};
    if (shape.rows * shape.entries * shape.width == 0)
      return l.replace(op.getAcc() ? op.getAcc() : zeros(l, type)), success();
    l.replace(addRows(l, op.getDresult(), op.getIndices(), op.getAcc(), type, shape,
                      op.getPadding() ? *op.getPadding() : -1));
    return success();
  }
};

} // namespace

void attachIndexingRules(MLIRContext* context) {
  attachRules<Rules, ir::EmbeddingOp, ir::EmbeddingGradOp, ir::GatherOp>(context);
}

} // namespace titan::lower
