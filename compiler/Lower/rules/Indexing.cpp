// Lowering of titan.embedding and its gradient: rows found by an index are no affine map, so they
// are routines.
#include "compiler/Lower/Rules.h"

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

struct Rules {
  static LogicalResult lower(ir::EmbeddingOp op, LoweringBuilder& l) {
    RankedTensorType table = tensorType(op.getTable()), type = op.getType();
    int64_t rows = tensorType(op.getIndices()).getNumElements();
    int64_t entries = table.getDimSize(0), width = elementsFrom(table, 1);
    if (rows * width == 0)
      return l.replace(l.empty(type)), success();
    if (entries == 0)
      return l.refuse("its table has no rows");
    l.replace(call(l, {op.getTable(), op.getIndices()}, l.empty(type),
                   kernel::EmbeddingAttr::get(l.context, rows, entries, width)));
    return success();
  }

  static LogicalResult lower(ir::EmbeddingGradOp op, LoweringBuilder& l) {
    RankedTensorType type = op.getType();
    int64_t rows = tensorType(op.getIndices()).getNumElements();
    int64_t entries = type.getDimSize(0), width = elementsFrom(type, 1);
    if (rows * entries * width == 0)
      return l.replace(op.getAcc() ? op.getAcc() : zeros(l, type)), success();
    const bool sorted = rows >= l.machine.embeddingGradSortedRows;
    auto routine = kernel::EmbeddingGradAttr::get(l.context, rows, entries, width,
                                                  /*accumulate=*/op.getAcc() != nullptr,
                                                  std::min(width, l.machine.embeddingGradColumns),
                                                  op.getPadding() ? *op.getPadding() : -1, sorted);
    SmallVector<Value> outs = {op.getAcc() ? op.getAcc() : l.empty(type)};
    if (sorted) {
      outs.push_back(
          l.empty(RankedTensorType::get({routine.getOrderElements()}, l.builder.getI32Type())));
      outs.push_back(
          l.empty(RankedTensorType::get({routine.getSumElements()}, type.getElementType())));
    }
    l.replace(call(l, {op.getDresult(), op.getIndices()}, outs, routine));
    return success();
  }
};

} // namespace

void attachIndexingRules(MLIRContext* context) {
  attachRules<Rules, ir::EmbeddingOp, ir::EmbeddingGradOp>(context);
}

} // namespace titan::lower
