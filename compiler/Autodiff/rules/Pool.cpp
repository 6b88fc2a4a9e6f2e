// Derivatives of titan.pool.
#include "compiler/Autodiff/Rules.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::autodiff {

namespace {

/// An element is in the windows that begin at most a window before it. In the gradient, spread out
/// by the strides and surrounded by zeros, they are a window of as many taps again.
Value spreadSum(AdjointBuilder& b, PoolOp op) {
  RankedTensorType operand = tensorType(op.getOperand()), result = tensorType(op.getResult());
  const auto rank = static_cast<size_t>(operand.getRank());
  SmallVector<int64_t> spread(rank), before(rank), interior(rank), none(rank, 0), one(rank, 1);
  SmallVector<int64_t> offsets(rank), extents(rank);
  for (size_t d = 0; d < rank; ++d) {
    const SpreadGradient of(op.getWindows(d));
    spread[d] = of.extent;
    before[d] = of.before;
    interior[d] = of.interior;
    offsets[d] = of.first;
    extents[d] = operand.getDimSize(d) + op.getDilations()[d] * (op.getWindow()[d] - 1);
  }
  Value padded =
      b.create<PadOp>(result.clone(spread), b.result(), b.builder.getDenseI64ArrayAttr(before),
                      b.builder.getDenseI64ArrayAttr(interior), b.builder.getF64FloatAttr(0));
  if (extents != spread)
    padded = b.create<SliceOp>(result.clone(extents), padded, ArrayRef<int64_t>(offsets),
                               ArrayRef<int64_t>(one));
  return b.create<PoolOp>(operand, ReduceKind::Sum, padded, op.getWindow(), ArrayRef<int64_t>(one),
                          ArrayRef<int64_t>(none), ArrayRef<int64_t>(none), op.getDilations());
}

void pool(AdjointBuilder& b, PoolOp op) {
  if (!b.needs(0))
    return;
  if (op.getKind() == ReduceKind::Sum)
    b.set(0, spreadSum(b, op));
  else
    b.set(0, b.create<MaxPoolGradOp>(op.getType().clone(tensorType(op.getOperand()).getShape()),
                                     op.getOperand(), b.result(), op.getWindow(), op.getStrides(),
                                     op.getLow(), op.getHigh(), op.getDilations()));
}

} // namespace

void attachPoolRules(MLIRContext* context) { attachRule<PoolOp, pool>(context); }

} // namespace titan::autodiff
