// Derivatives of attention and rotary position embedding.
#include "compiler/Autodiff/Rules.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::autodiff {

namespace {

using Builder = AdjointBuilder;

/// One op recomputes the probabilities and gives all three adjoints.
LogicalResult attention(Builder& b, AttentionOp op) {
  constexpr unsigned maskOperand = 3;
  if (op.getMask() && b.needs(maskOperand))
    return op.emitError()
           << "the mask of attention depends on a parameter that is trained, module path "
           << pathString(op)
           << ": its gradient is not available; freeze the parameter, or export the model "
              "with attention as separate products and softmax";
  if (b.result(1))
    return op.emitError() << "log_sum_exp of attention is on the path to the loss, module path "
                          << pathString(op) << ": it has no derivative";
  auto grad = b.create<AttentionGradOp>(
      TypeRange{op.getQuery().getType(), op.getKey().getType(), op.getValue().getType()},
      op.getQuery(), op.getKey(), op.getValue(), op.getResult(), op.getLogSumExp(), b.result(0),
      op.getMask(), op.getSeed(), op.getStep(), op.getMicrobatch(), op.getScaleAttr(),
      op.getCausalAttr(), op.getPAttr(), op.getStreamAttr(), op.getWindowAttr());
  for (auto [i, adjoint] : llvm::enumerate(grad.getResults()))
    if (b.needs(i))
      b.set(i, adjoint);
  return success();
}

/// The pairs (a, b) that a rotation turns, as two tensors [B, T, H, R / 2].
std::pair<Value, Value> pairsOf(Builder& b, RotaryOp op, Value x) {
  SmallVector<int64_t> shape(tensorType(x).getShape());
  int64_t pairs = tensorType(op.getCos()).getShape().back();
  shape.back() = pairs;
  bool interleaved = op.getInterleaved();
  auto take = [&](int64_t offset) -> Value {
    return b.create<SliceOp>(tensorType(x).clone(shape), x, ArrayRef<int64_t>{0, 0, 0, offset},
                             ArrayRef<int64_t>{1, 1, 1, interleaved ? 2 : 1});
  };
  return {take(0), take(interleaved ? 1 : pairs)};
}

/// The sum of `x` [B, T, H, R / 2] over what `angles` does not have.
Value sumToAngles(Builder& b, Value x, RankedTensorType angles) {
  bool batched = angles.getRank() == 3 && angles.getDimSize(0) > 1;
  SmallVector<int64_t> dims = {2};
  if (!batched)
    dims = {0, 2};
  return b.reshape(b.reduce(ReduceKind::Sum, x, dims), angles.getShape());
}

/// The adjoint is turned back by the angles; d cos = a da + b db, d sin = a db - b da.
void rotary(Builder& b, RotaryOp op) {
  Value dy = b.result();
  if (b.needs(0))
    b.set(0, b.create<RotaryOp>(dy.getType(), dy, op.getCos(), b.neg(op.getSin()),
                                op.getInterleavedAttr()));
  if (!b.needs(1) && !b.needs(2))
    return;
  RankedTensorType angles = tensorType(op.getCos());
  auto wide = [&](Value v) { return b.convert(v, angles.getElementType()); };
  auto [x1, x2] = pairsOf(b, op, wide(op.getOperand()));
  auto [d1, d2] = pairsOf(b, op, wide(dy));
  if (b.needs(1))
    b.set(1, sumToAngles(b, b.add(b.mul(x1, d1), b.mul(x2, d2)), angles));
  if (b.needs(2))
    b.set(2, sumToAngles(b, b.sub(b.mul(x1, d2), b.mul(x2, d1)), angles));
}

} // namespace

void attachAttentionRules(MLIRContext* context) {
  attachRule<AttentionOp, attention>(context);
  attachRule<RotaryOp, rotary>(context);
}

} // namespace titan::autodiff
