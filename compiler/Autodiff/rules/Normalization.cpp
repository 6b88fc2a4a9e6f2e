// Derivatives of softmax, layer and root-mean-square normalisation.
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

/// What the derivatives of layer_norm and rms_norm share: the dimensions that are normalised, those
/// of them that are summed first, and the others. Statistics are f32 (f64 for f64), and so is
/// everything between them.
class Normalised {
public:
  double n = 1; ///< elements of a row

  Normalised(Builder& b, Value operand, ArrayRef<int64_t> dims, ArrayRef<int64_t> apart, Value rstd)
      : b(b), type(tensorType(operand)), statistic(tensorType(rstd).getElementType()), inner(dims),
        apart(apart) {
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (!llvm::is_contained(dims, d))
        outer.push_back(d);
    for (int64_t d : inner)
      n *= static_cast<double>(type.getDimSize(d));
  }

  Value wide(Value v) { return b.convert(v, statistic); }
  Value narrow(Value v) { return b.convert(v, type.getElementType()); }
  /// Of groups of channels first for each channel: kernels then read one row of all channels.
  Value overRows(Value v) {
    const size_t left = inner.size() - apart.size();
    if (apart.empty() || left == 0)
      return b.broadcast(v, type.getShape(), outer);
    SmallVector<int64_t> dims = outer, shape;
    llvm::append_range(dims, ArrayRef(inner).take_back(left));
    for (int64_t d : dims)
      shape.push_back(type.getDimSize(d));
    Value wide = b.broadcast(
        v, shape, llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(outer.size()))));
    return b.broadcast(wide, type.getShape(), dims);
  }
  Value overColumns(Value v) { return b.broadcast(wide(v), type.getShape(), inner); }
  /// The mean of each row, repeated along it.
  Value mean(Value v) { return overRows(b.scale(sumOfRows(v), 1 / n)); }
  /// Sets the adjoint of operand number `operand`, a scale or bias: the sum of `term` over rows.
  void setAffine(unsigned operand, Value parameter, Value term) {
    if (!b.needs(operand))
      return;
    Value sum = outer.empty() ? term : b.reduce(ReduceKind::Sum, term, outer);
    b.set(operand, b.convert(sum, tensorType(parameter).getElementType()));
  }

private:
  Value sumOfRows(Value v) {
    if (apart.empty() || apart.size() == inner.size())
      return b.reduce(ReduceKind::Sum, v, inner);
    Value sums = b.reduce(ReduceKind::Sum, v, apart);
    const int64_t rank = tensorType(sums).getRank();
    const auto left = static_cast<int64_t>(inner.size() - apart.size());
    return b.reduce(ReduceKind::Sum, sums, llvm::to_vector(llvm::seq(rank - left, rank)));
  }

  Builder& b;
  RankedTensorType type;
  Type statistic;
  SmallVector<int64_t> outer, inner, apart;
};

/// With xhat = (x - mean) rstd, g = dy scale and means over the normalised dimensions:
/// dx = rstd (g - mean(g) - xhat mean(g xhat)), dscale = sum over rows of dy xhat, dbias = sum over
/// rows of dy. The statistics are results too: d mean / dx = 1/n, d rstd / dx = -rstd^2 xhat / n.
void layerNorm(Builder& b, LayerNormOp op) {
  Normalised rows(b, op.getOperand(), op.getDims(), op.getDimsApart(), op.getRstd());
  Value rstd = rows.overRows(op.getRstd());
  Value xhat = b.mul(b.sub(rows.wide(op.getOperand()), rows.overRows(op.getMean())), rstd);
  Value dy = b.result(0) ? rows.wide(b.result(0)) : Value();

  if (b.needs(0)) {
    Value dx;
    auto accumulate = [&](Value term) { dx = dx ? b.add(dx, term) : term; };
    if (dy) {
      Value g = op.getScale() ? b.mul(dy, rows.overColumns(op.getScale())) : dy;
      Value centred = b.sub(b.sub(g, rows.mean(g)), b.mul(xhat, rows.mean(b.mul(g, xhat))));
      accumulate(b.mul(rstd, centred));
    }
    if (Value dmean = b.result(1))
      accumulate(rows.overRows(b.scale(dmean, 1 / rows.n)));
    if (Value drstd = b.result(2)) {
      Value slope = b.mul(b.mul(op.getRstd(), op.getRstd()), drstd);
      accumulate(b.mul(rows.overRows(b.scale(slope, -1 / rows.n)), xhat));
    }
    b.set(0, rows.narrow(dx));
  }
  if (!dy)
    return;
  unsigned next = 1;
  if (op.getScale())
    rows.setAffine(next++, op.getScale(), b.mul(dy, xhat));
  if (op.getBias())
    rows.setAffine(next, op.getBias(), dy);
}

/// With xhat = x rstd, g = dy scale: dx = rstd (g - xhat mean(g xhat)), dscale = sum over rows of
/// dy xhat; d rstd / dx = -rstd^2 xhat / n.
void rmsNorm(Builder& b, RmsNormOp op) {
  const auto rank = tensorType(op.getOperand()).getRank();
  Normalised rows(b, op.getOperand(), llvm::to_vector(llvm::seq<int64_t>(op.getAxis(), rank)),
                  /*apart=*/{}, op.getRstd());
  Value rstd = rows.overRows(op.getRstd());
  Value xhat = b.mul(rows.wide(op.getOperand()), rstd);
  Value dy = b.result(0) ? rows.wide(b.result(0)) : Value();

  if (b.needs(0)) {
    Value dx;
    if (dy) {
      Value g = op.getScale() ? b.mul(dy, rows.overColumns(op.getScale())) : dy;
      dx = b.mul(rstd, b.sub(g, b.mul(xhat, rows.mean(b.mul(g, xhat)))));
    }
    if (Value drstd = b.result(1)) {
      Value slope = b.mul(b.mul(op.getRstd(), op.getRstd()), drstd);
      Value term = b.mul(rows.overRows(b.scale(slope, -1 / rows.n)), xhat);
      dx = dx ? b.add(dx, term) : term;
    }
    b.set(0, rows.narrow(dx));
  }
  if (dy && op.getScale())
    rows.setAffine(1, op.getScale(), b.mul(dy, xhat));
}

/// As layer_norm over all dimensions but that of the channel: with xhat = (x - mean) rstd and
/// g = dy scale, dx = rstd (g - mean(g) - xhat mean(g xhat)). The statistics are results too:
/// d mean / dx = 1/n, d variance / dx = 2 (x - mean) / n.
void batchNorm(Builder& b, BatchNormOp op) {
  RankedTensorType type = tensorType(op.getOperand());
  Type statistic = tensorType(op.getMean()).getElementType();
  const SmallVector<int64_t> reduced = op.getReducedDims();
  const double n = static_cast<double>(op.getCount());
  const auto along = [&](Value vector) {
    return b.broadcast(b.convert(vector, statistic), type.getShape(), op.getDim());
  };
  const auto sum = [&](Value v) { return b.reduce(ReduceKind::Sum, v, reduced); };
  Value epsilon = b.splatLike(op.getVariance(), op.getEpsilon().convertToDouble());
  Value rstd = b.create<RsqrtOp>(b.add(op.getVariance(), epsilon));
  Value centred = b.sub(b.convert(op.getOperand(), statistic), along(op.getMean()));
  Value xhat = b.mul(centred, along(rstd));
  Value dy = b.result(0) ? b.convert(b.result(0), statistic) : Value(), sumOfDy, sumOfDyXhat;
  if (dy) {
    sumOfDy = sum(dy);
    sumOfDyXhat = sum(b.mul(dy, xhat));
  }
  if (b.needs(0)) {
    Value dx;
    auto accumulate = [&](Value term) { dx = dx ? b.add(dx, term) : term; };
    if (dy) {
      Value factor = b.mul(rstd, b.convert(op.getScale(), statistic));
      Value rest = b.sub(b.sub(dy, along(b.scale(sumOfDy, 1 / n))),
                         b.mul(xhat, along(b.scale(sumOfDyXhat, 1 / n))));
      accumulate(b.mul(along(factor), rest));
    }
    if (Value dmean = b.result(1))
      accumulate(along(b.scale(dmean, 1 / n)));
    if (Value dvariance = b.result(2))
      accumulate(b.mul(along(b.scale(dvariance, 2 / n)), centred));
    b.set(0, b.convert(dx, type.getElementType()));
  }
  const auto setVector = [&](unsigned operand, Value gradient) {
    if (dy && b.needs(operand))
      b.set(operand, b.convert(gradient, tensorType(op->getOperand(operand)).getElementType()));
  };
  setVector(1, sumOfDyXhat);
  setVector(2, sumOfDy);
}

} // namespace

void attachNormalizationRules(MLIRContext* context) {
  attachUnaryRule<SoftmaxOp, softmax>(context);
  attachUnaryRule<LogSoftmaxOp, logSoftmax>(context);
  attachRule<BatchNormOp, batchNorm>(context);
  attachRule<LayerNormOp, layerNorm>(context);
  attachRule<RmsNormOp, rmsNorm>(context);
}

} // namespace titan::autodiff
