// Derivatives of embedding and gather: the adjoint of a row or an element is the sum of the results
// that read it; the row of the padding has none.
#include "compiler/Autodiff/Rules.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::autodiff {

void attachIndexingRules(MLIRContext* context) {
  attachRule<EmbeddingOp, [](AdjointBuilder& b, EmbeddingOp op) {
    if (!b.needs(0))
      return;
    RankedTensorType table = tensorType(op.getTable());
    Type element = table.getElementType();
    Type sums = element.isF64() ? element : b.builder.getF32Type();
    Value rows = b.create<EmbeddingGradOp>(table.clone(sums), b.result(), op.getIndices(), Value(),
                                           b.builder.getI64IntegerAttr(table.getDimSize(0)),
                                           op.getPaddingAttr());
    b.set(0, b.convert(rows, element));
  }>(context);
  attachRule<GatherOp, [](AdjointBuilder& b, GatherOp op) {
    if (b.needs(0))
      b.set(0, b.create<ScatterOp>(ScatterKind::Add, b.splatLike(op.getOperand(), 0),
                                   op.getIndices(), b.result(), op.getDim()));
  }>(context);
}

} // namespace titan::autodiff
