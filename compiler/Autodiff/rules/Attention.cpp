// Derivatives of attention and rotary position embedding.
#include "compiler/Autodiff/Rules.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::autodiff {

namespace {

using Builder = AdjointBuilder;

/// `left` [B, T, H, width] times `right` [B, S, G, width] per head: [B, H, T, S].
Value productPerHead(Builder& b, Value left, Value right) {
  ArrayRef<int64_t> l = tensorType(left).getShape(), r = tensorType(right).getShape();
  int64_t batch = l[0], queries = l[1], heads = l[2], keys = r[1], keyHeads = r[2];
  auto product = [&](Value grouped) -> Value {
    int64_t width = tensorType(grouped).getRank() - 1;
    return b.create<ContractOp>(grouped, right, Value(), ArrayRef<int64_t>{0, 2},
                                ArrayRef<int64_t>{0, 2}, ArrayRef<int64_t>{width},
                                ArrayRef<int64_t>{3});
  };
  if (heads == keyHeads)
    return product(left);
  Value grouped = product(b.reshape(left, {batch, queries, keyHeads, heads / keyHeads, l[3]}));
  return b.reshape(b.transpose(grouped, {0, 1, 3, 2, 4}), {batch, heads, queries, keys});
}

/// `mask` repeated to `scores` [B, H, T, S].
Value repeatMask(Builder& b, Value mask, ArrayRef<int64_t> scores) {
  SmallVector<int64_t> extents, dims;
  for (auto [d, extent] : llvm::enumerate(tensorType(mask).getShape()))
    if (extent == scores[d]) {
      extents.push_back(extent);
      dims.push_back(static_cast<int64_t>(d));
    }
  return b.broadcast(b.reshape(mask, extents), scores, dims);
}

/// The adjoint of an additive mask, dS of the op's description summed over what the mask repeats.
/// It needs [T, S] tensors as no other part of attention does: only a mask that is trained pays for
/// it.
Value maskAdjoint(Builder& b, AttentionOp op) {
  remark::missed(op.getLoc(), remark::RemarkOpts::name("trained-mask").category("differentiate"))
      << remark::reason("the mask of {0} is trained: its gradient stores the scores of all heads",
                        pathString(op));
  Value mask = op.getMask(), total = op.getLogSumExp();
  Value products = productPerHead(b, op.getQuery(), op.getKey());
  ArrayRef<int64_t> shape = tensorType(products).getShape();
  auto overKeys = [&](Value rows) { return b.broadcast(rows, shape, {0, 1, 2}); };
  Value scores =
      b.add(b.scale(products, op.getScale().convertToDouble()), repeatMask(b, mask, shape));
  // A query that attends to nothing has no probabilities.
  Value attended = overKeys(b.create<IsFiniteOp>(total));
  if (op.getCausal()) {
    auto indices = RankedTensorType::get(shape, b.builder.getI64Type());
    Value past = b.compare(ComparePredicate::LE, b.create<IotaOp>(indices, int64_t(3)),
                           b.create<IotaOp>(indices, int64_t(2)));
    attended = b.create<AndOp>(attended, past);
  }
  Value distance = b.sub(b.sub(scores, overKeys(op.getLargest())), overKeys(total));
  Value probabilities = b.select(attended, b.exp(distance), b.splatLike(scores, 0));

  Value dprobabilities = productPerHead(b, b.result(0), op.getValue());
  if (!op.getP().isZero())
    dprobabilities = b.create<DropoutOp>(
        dprobabilities.getType(), dprobabilities, op.getSeed(), op.getStep(), op.getBase(),
        op.getPAttr(), op.getStreamAttr(), DenseI64ArrayAttr(), op.getWindowAttr());
  Type wide = tensorType(total).getElementType();
  Value overlap = b.mul(b.convert(b.result(0), wide), b.convert(op.getResult(), wide));
  Value delta = b.transpose(b.reduce(ReduceKind::Sum, overlap, {3}), {0, 2, 1});
  Value dscores = b.mul(probabilities, b.sub(dprobabilities, overKeys(delta)));

  SmallVector<int64_t> repeated;
  for (auto [d, extent] : llvm::enumerate(tensorType(mask).getShape()))
    if (extent != shape[d])
      repeated.push_back(static_cast<int64_t>(d));
  if (!repeated.empty())
    dscores = b.reduce(ReduceKind::Sum, dscores, repeated);
  return b.reshape(dscores, tensorType(mask).getShape());
}

/// One op recomputes the probabilities and gives the adjoints of query, key and value.
LogicalResult attention(Builder& b, AttentionOp op) {
  if (b.result(1) || (op.getLargest() && b.result(2)))
    return op.emitError() << "log_sum_exp of attention is on the path to the loss, module path "
                          << pathString(op) << ": it has no derivative";
  constexpr unsigned maskOperand = 3;
  if (op.getMask() && b.needs(maskOperand))
    b.set(maskOperand, maskAdjoint(b, op));
  if (!b.needs(0) && !b.needs(1) && !b.needs(2))
    return success();
  auto grad = b.create<AttentionGradOp>(
      TypeRange{op.getQuery().getType(), op.getKey().getType(), op.getValue().getType()},
      op.getQuery(), op.getKey(), op.getValue(), op.getResult(), op.getLogSumExp(), b.result(0),
      op.getLargest(), op.getMask(), op.getSeed(), op.getStep(), op.getBase(), op.getScaleAttr(),
      op.getCausalAttr(), op.getPAttr(), op.getStreamAttr(), op.getWindowAttr(), op.getFillAttr());
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
