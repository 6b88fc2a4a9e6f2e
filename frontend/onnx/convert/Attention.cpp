// Scaled dot-product attention and rotary embedding as single nodes (opsets 23 and later). ONNX has
// [batch, head, position, width] or [batch, position, head * width]; titan's ops take
// [batch, position, head, width].
#include "frontend/onnx/convert/Conversion.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

const SmallVector<int64_t, 4> kSwapHeads{0, 2, 1, 3};

/// Operand `i` as [batch, position, head, width]; `heads` comes from an attribute where it has rank
/// 3.
Result<Value> byPosition(Conversion& c, size_t i, const char* attribute) {
  Value x = TITAN_TRY(c.floatOperand(i));
  Shape shape = c.shapeOf(x);
  if (shape.size() == 4)
    return c.transposed(x, kSwapHeads);
  int64_t heads = c.node.integer(attribute, 0);
  if (shape.size() != 3)
    return c.error("operand {} of {} has neither rank 3 nor 4", i, toString(shape));
  if (heads <= 0 || shape[2] % heads != 0)
    return c.error("{} = {} for operand {} of {}", attribute, heads, i, toString(shape));
  return c.reshape(x, {shape[0], shape[1], heads, shape[2] / heads});
}

/// The mask with rank 4, each dimension that of the scores [B, H, T, S] or 1, the last one S.
Result<Value> scoreMask(Conversion& c, Value mask, ArrayRef<int64_t> scores) {
  Shape shape = c.shapeOf(mask);
  if (shape.size() > 4 || shape.empty())
    return c.error("a mask of {} for scores of {}", toString(shape), toString(scores));
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  if (broadcastShape(shape, scores) != Shape(scores))
    return c.error("a mask of {} for scores of {}", toString(shape), toString(scores));
  mask = c.reshaped(mask, shape);
  if (shape[3] != scores[3]) {
    shape[3] = scores[3];
    mask = c.broadcastTo(mask, shape);
  }
  return mask;
}

/// The mask of a local window (opset 25): query i sees keys i - left to i + right, a negative size
/// means no limit. Null: no window.
Value windowMask(Conversion& c, int64_t queries, int64_t keys) {
  int64_t left = c.node.integer("left_window_size", -1);
  int64_t right = c.node.integer("right_window_size", -1);
  auto indices = RankedTensorType::get({1, 1, queries, keys}, c.builder.getI64Type());
  Value row = c.create<IotaOp>(indices, c.builder.getI64IntegerAttr(2));
  Value column = c.create<IotaOp>(indices, c.builder.getI64IntegerAttr(3));
  Value behind = c.sub(row, column), seen;
  if (left >= 0)
    seen = c.compare(ComparePredicate::LE, behind,
                     c.splat(indices, static_cast<double>(std::min(left, keys + queries))));
  if (right >= 0) {
    Value near = c.compare(ComparePredicate::GE, behind,
                           c.splat(indices, -static_cast<double>(std::min(right, keys + queries))));
    seen = seen ? Value(c.create<AndOp>(seen, near)) : near;
  }
  return seen;
}

/// Attended where both masks say so; a floating one is added.
Value bothMasks(Conversion& c, Value mask, Value window) {
  if (!mask || !window)
    return mask ? mask : window;
  std::optional<Shape> shape = broadcastShape(c.shapeOf(mask), c.shapeOf(window));
  mask = c.broadcastTo(mask, *shape);
  window = c.broadcastTo(window, *shape);
  if (tensorType(mask).getElementType().isInteger(1))
    return c.create<AndOp>(mask, window);
  return c.select(window, mask, c.splatLike(mask, -std::numeric_limits<double>::infinity()));
}

/// With a cap the scores pass through cap * tanh(score / cap), which titan.attention has not:
/// the products and the softmax one by one. Operands are [B, T, H, D], heads repeated already.
Result<Value> cappedAttention(Conversion& c, Value query, Value key, Value value, Value mask,
                              double scale, double cap, bool causal) {
  Value scores = TITAN_TRY(c.contract(query, key, {0, 2}, {0, 2}, 3, 3));
  scores = c.scale(c.create<TanhOp>(c.scale(scores, scale / cap)), cap);
  Shape shape = c.shapeOf(scores);
  double lowest = -std::numeric_limits<double>::infinity();
  if (causal) {
    auto indices = RankedTensorType::get({shape[2], shape[3]}, c.builder.getI64Type());
    Value row = c.create<IotaOp>(indices, c.builder.getI64IntegerAttr(0));
    Value column = c.create<IotaOp>(indices, c.builder.getI64IntegerAttr(1));
    Value seen = c.broadcastTo(c.compare(ComparePredicate::LE, column, row), shape);
    scores = c.select(seen, scores, c.splatLike(scores, lowest));
  }
  if (mask && tensorType(mask).getElementType().isInteger(1))
    scores = c.select(c.broadcastTo(mask, shape), scores, c.splatLike(scores, lowest));
  else if (mask)
    scores =
        c.add(scores, c.broadcastTo(c.convert(mask, tensorType(scores).getElementType()), shape));
  Value weights = c.create<SoftmaxOp>(scores, c.builder.getI64IntegerAttr(3));
  Value result = TITAN_TRY(c.contract(weights, value, {0, 1}, {0, 2}, 3, 1));
  return c.transposed(result, kSwapHeads);
}

/// Each of the `heads` of [B, S, G, D] repeated to `wanted`.
Value repeatHeads(Conversion& c, Value x, int64_t wanted) {
  Shape shape = c.shapeOf(x);
  if (shape[2] == wanted)
    return x;
  Value wide =
      c.broadcast(x, {shape[0], shape[1], shape[2], wanted / shape[2], shape[3]}, {0, 1, 2, 4});
  return c.reshape(wide, {shape[0], shape[1], wanted, shape[3]});
}

Status attention(Conversion& c) {
  if (c.has(4) || c.has(5) || c.wants(1) || c.wants(2))
    return c.error("past keys and values are not supported: export without a cache "
                   "(use_cache=False)");
  if (c.has(6))
    return c.error("nonpad_kv_seqlen is not supported: export with a mask");
  if (c.wants(3))
    return c.error("the scores (qk_matmul_output, mode {}) are read by the model, which is not "
                   "supported",
                   c.node.integer("qk_matmul_output_mode", 0));
  Value query = TITAN_TRY(byPosition(c, 0, "q_num_heads"));
  Value key = TITAN_TRY(byPosition(c, 1, "kv_num_heads"));
  Value value = TITAN_TRY(byPosition(c, 2, "kv_num_heads"));
  Shape q = c.shapeOf(query), k = c.shapeOf(key), v = c.shapeOf(value);
  Type type = tensorType(query).getElementType();
  if (q[0] != k[0] || q[3] != k[3] || k[0] != v[0] || k[1] != v[1] || k[2] != v[2] ||
      q[2] % k[2] != 0 || tensorType(key).getElementType() != type ||
      tensorType(value).getElementType() != type)
    return c.error("query, key and value of {}, {} and {} (batch, position, head, width) do not "
                   "fit",
                   toString(q), toString(k), toString(v));
  double scale = c.node.real("scale", 0);
  if (scale == 0)
    scale = 1 / std::sqrt(static_cast<double>(q[3]));
  bool causal = c.node.integer("is_causal", 0) != 0;
  Value mask;
  if (c.has(3)) {
    mask = TITAN_TRY(scoreMask(c, TITAN_TRY(c.operand(3)), {q[0], q[2], q[1], k[1]}));
    Type element = tensorType(mask).getElementType();
    if (!element.isInteger(1) && !c.isFloat(mask))
      return c.error("the mask is neither boolean nor floating");
    if (!element.isInteger(1))
      mask = c.convert(mask, accumulationType(type));
  }
  mask = bothMasks(c, mask, windowMask(c, q[1], k[1]));
  Value result;
  if (double cap = c.node.real("softcap", 0); cap != 0)
    result = TITAN_TRY(cappedAttention(c, query, repeatHeads(c, key, q[2]),
                                       repeatHeads(c, value, q[2]), mask, scale, cap, causal));
  else
    result = c.create<AttentionOp>(query, key, value, mask, scale, causal, FloatAttr()).getResult();
  bool flat = c.shapeOf(TITAN_TRY(c.operand(0))).size() == 3;
  return c.give(flat ? c.reshape(result, {q[0], q[1], q[2] * v[3]})
                     : c.transposed(result, kSwapHeads));
}

/// A table of angles [B, T, R / 2] that repeats along the batch, as [T, R / 2].
Value withoutBatch(Conversion& c, Value table) {
  Shape shape = c.shapeOf(table);
  if (shape.size() != 3)
    return table;
  if (shape[0] == 1)
    return c.reshaped(table, ArrayRef<int64_t>(shape).drop_front());
  auto broadcast = table.getDefiningOp<BroadcastOp>();
  if (!broadcast || llvm::is_contained(broadcast.getDims(), 0))
    return table;
  SmallVector<int64_t> dims;
  for (int64_t d : broadcast.getDims())
    dims.push_back(d - 1);
  return c.broadcast(broadcast.getOperand(), ArrayRef<int64_t>(shape).drop_front(), dims);
}

Status rotaryEmbedding(Conversion& c) {
  Value x = TITAN_TRY(byPosition(c, 0, "num_heads"));
  Value cosine = TITAN_TRY(c.floatOperand(1)), sine = TITAN_TRY(c.floatOperand(2));
  Shape shape = c.shapeOf(x);
  if (c.has(3)) {
    Value ids = TITAN_TRY(c.integerOperand(3));
    if (c.rankOf(cosine) != 2 || c.rankOf(sine) != 2 || c.rankOf(ids) != 2)
      return c.error("position ids of {} for tables of {}", toString(c.shapeOf(ids)),
                     toString(c.shapeOf(cosine)));
    cosine = c.create<EmbeddingOp>(cosine, ids);
    sine = c.create<EmbeddingOp>(sine, ids);
  }
  cosine = withoutBatch(c, cosine);
  sine = withoutBatch(c, sine);
  Shape angles = c.shapeOf(cosine);
  int64_t rotated = c.node.integer("rotary_embedding_dim", 0);
  rotated = rotated == 0 ? shape[3] : rotated;
  bool fits = (angles.size() == 2 || (angles.size() == 3 && angles[0] == shape[0])) &&
              angles == c.shapeOf(sine) && angles[angles.size() - 2] == shape[1] &&
              2 * angles.back() == rotated && rotated <= shape[3];
  if (!fits || cosine.getType() != sine.getType())
    return c.error("angles of {} and {} for {} (batch, position, head, width), of which {} turn",
                   toString(angles), toString(c.shapeOf(sine)), toString(shape), rotated);
  bool interleaved = c.node.integer("interleaved", 0) != 0;
  Value turned = c.create<RotaryOp>(x.getType(), x, cosine, sine,
                                    interleaved ? c.builder.getUnitAttr() : UnitAttr());
  bool flat = c.shapeOf(TITAN_TRY(c.operand(0))).size() == 3;
  return c.give(flat ? c.reshape(turned, {shape[0], shape[1], shape[2] * shape[3]})
                     : c.transposed(turned, kSwapHeads));
}

} // namespace

ArrayRef<ConverterEntry> attentionConverters() {
  static const ConverterEntry table[] = {
      {"Attention", 23, attention, "no cache, no output of the scores"},
      {"RotaryEmbedding", 23, rotaryEmbedding, ""},
  };
  return table;
}

} // namespace titan::frontend
