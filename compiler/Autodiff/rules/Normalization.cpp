// Derivatives of softmax and layer normalisation.
#include "compiler/Autodiff/Rules.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::autodiff {

namespace {

using Builder = AdjointBuilder;

/// The sum of `x` along `dim`, repeated along it.
Value sumAlong(Builder& b, Value x, int64_t dim) {
  return b.unreduce(b.reduce(ReduceKind::Sum, x, {dim}), tensorType(x).getShape(), {dim});
}

Value softmax(Builder& b, SoftmaxOp op, Value dy) {
  Value y = op.getResult();
  return b.mul(y, b.sub(dy, sumAlong(b, b.mul(dy, y), op.getDim())));
}

Value logSoftmax(Builder& b, LogSoftmaxOp op, Value dy) {
  return b.sub(dy, b.mul(b.exp(op.getResult()), sumAlong(b, dy, op.getDim())));
}

/// With xhat = (x - mean) rstd, g = dy scale and means over the normalised dimensions:
/// dx = rstd (g - mean(g) - xhat mean(g xhat)), dscale = sum over rows of dy xhat, dbias = sum over
/// rows of dy. The statistics are results too: d mean / dx = 1/n, d rstd / dx = -rstd^2 xhat / n.
void layerNorm(Builder& b, LayerNormOp op) {
  RankedTensorType type = tensorType(op.getOperand());
  ArrayRef<int64_t> shape = type.getShape();
  int64_t axis = op.getAxis(), rank = type.getRank(), n = 1;
  for (int64_t extent : shape.drop_front(axis))
    n *= extent;
  SmallVector<int64_t> outer = llvm::to_vector(llvm::seq<int64_t>(0, axis));
  SmallVector<int64_t> inner = llvm::to_vector(llvm::seq<int64_t>(axis, rank));
  // Statistics are f32 (f64 for f64), and so is everything between them.
  Type statistic = tensorType(op.getMean()).getElementType(), element = type.getElementType();
  auto wide = [&](Value v) { return b.convert(v, statistic); };
  auto overRows = [&](Value v) { return b.broadcast(v, shape, outer); };
  auto meanInner = [&](Value v) {
    return overRows(b.scale(b.reduce(ReduceKind::Sum, v, inner), 1.0 / static_cast<double>(n)));
  };
  Value rstd = overRows(op.getRstd());
  Value xhat = b.mul(b.sub(wide(op.getOperand()), overRows(op.getMean())), rstd);
  Value dy = b.result(0) ? wide(b.result(0)) : Value();

  if (b.needs(0)) {
    Value dx;
    auto accumulate = [&](Value term) { dx = dx ? b.add(dx, term) : term; };
    if (dy) {
      Value g = op.getScale() ? b.mul(dy, b.broadcast(wide(op.getScale()), shape, inner)) : dy;
      Value centred = b.sub(b.sub(g, meanInner(g)), b.mul(xhat, meanInner(b.mul(g, xhat))));
      accumulate(b.mul(rstd, centred));
    }
    if (Value dmean = b.result(1))
      accumulate(overRows(b.scale(dmean, 1.0 / static_cast<double>(n))));
    if (Value drstd = b.result(2)) {
      Value slope = b.mul(b.mul(op.getRstd(), op.getRstd()), drstd);
      accumulate(b.mul(overRows(b.scale(slope, -1.0 / static_cast<double>(n))), xhat));
    }
    b.set(0, b.convert(dx, element));
  }
  if (!dy)
    return;
  auto setAffine = [&](Value parameter, unsigned operand, Value term) {
    if (!b.needs(operand))
      return;
    Value sum = outer.empty() ? term : b.reduce(ReduceKind::Sum, term, outer);
    b.set(operand, b.convert(sum, tensorType(parameter).getElementType()));
  };
  unsigned next = 1;
  if (op.getScale())
    setAffine(op.getScale(), next++, b.mul(dy, xhat));
  if (op.getBias())
    setAffine(op.getBias(), next, dy);
}

} // namespace

void attachNormalizationRules(MLIRContext* context) {
  attachUnaryRule<SoftmaxOp, softmax>(context);
  attachUnaryRule<LogSoftmaxOp, logSoftmax>(context);
  attachRule<LayerNormOp, layerNorm>(context);
}

} // namespace titan::autodiff
