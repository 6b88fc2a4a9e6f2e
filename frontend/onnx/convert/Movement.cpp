// Ops that move elements: reshape, transpose, join, repeat, pad.
#include "frontend/onnx/convert/Conversion.h"

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

Status reshapeOp(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  auto target = TITAN_TRY(c.list(1, "the target shape"));
  Shape shape =
      TITAN_TRY(reshapeTarget(c.node, c.shapeOf(x), target, c.node.integer("allowzero", 0) != 0));
  return c.give(c.reshaped(x, shape));
}

Status flatten(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  int64_t rank = c.rankOf(x), axis = c.node.integer("axis", 1);
  if (axis < -rank || axis > rank)
    return c.error("axis {} is outside of rank {}", axis, rank);
  axis = axis < 0 ? axis + rank : axis;
  Shape shape = c.shapeOf(x);
  return c.give(c.reshape(x, {elementCount(std::span(shape).first(axis)),
                              elementCount(std::span(shape).subspan(axis))}));
}

Status squeeze(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  auto axes = TITAN_TRY(c.axes(1));
  return c.give(c.reshaped(x, TITAN_TRY(squeezeTarget(c.node, c.shapeOf(x), axes))));
}

Status unsqueeze(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  auto axes = TITAN_TRY(c.axes(1));
  return c.give(c.reshaped(
      x, TITAN_TRY(unsqueezeTarget(c.node, c.shapeOf(x), axes.value_or(std::vector<int64_t>())))));
}

Status transposeOp(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  return c.give(c.transposed(x, TITAN_TRY(permutationOf(c.node, c.rankOf(x)))));
}

Status expand(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  auto target = TITAN_TRY(c.list(1, "the target shape"));
  return c.give(c.broadcastTo(x, TITAN_TRY(expandTarget(c.node, c.shapeOf(x), target))));
}

/// Each dimension that repeats gets a new one before it, which is broadcast and merged.
Status tile(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  auto repeats = TITAN_TRY(c.list(1, "repeats"));
  Shape shape = c.shapeOf(x), wide, result;
  if (repeats.size() != shape.size())
    return c.error("{} repeats for rank {}", repeats.size(), shape.size());
  SmallVector<int64_t> dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    TITAN_TRY(checkedElementCount(std::vector<int64_t>{repeats[d], shape[d]}, c.node.shown()));
    if (repeats[d] != 1 && shape[d] != 1)
      wide.push_back(repeats[d]);
    dims.push_back(static_cast<int64_t>(wide.size()));
    wide.push_back(shape[d] == 1 ? repeats[d] : shape[d]);
    result.push_back(repeats[d] * shape[d]);
  }
  if (TITAN_TRY(checkedElementCount(result, c.node.shown())) == 0)
    return c.error("repeats {} give an empty tensor", toString(repeats));
  // A dimension of extent 1 is broadcast itself.
  if (wide == result)
    return c.give(c.broadcastTo(x, result));
  SmallVector<int64_t> kept, keptDims;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] == wide[dims[d]]) {
      kept.push_back(shape[d]);
      keptDims.push_back(dims[d]);
    }
  return c.give(c.reshape(c.broadcast(c.reshaped(x, kept), wide, keptDims), result));
}

/// Keeps column - row <= k (lower) or >= k (upper) of the last two dimensions.
Status trilu(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  int64_t rank = c.rankOf(x);
  if (rank < 2)
    return c.error("operand of rank {} is no matrix", rank);
  int64_t k = c.has(1) ? static_cast<int64_t>(TITAN_TRY(c.scalar(1, "k"))) : 0;
  Shape shape = c.shapeOf(x);
  k = std::clamp(k, -shape[rank - 2] - 1, shape[rank - 1] + 1);
  auto indices = RankedTensorType::get({shape[rank - 2], shape[rank - 1]}, c.builder.getI64Type());
  Value row = c.create<IotaOp>(indices, c.builder.getI64IntegerAttr(0));
  Value column = c.create<IotaOp>(indices, c.builder.getI64IntegerAttr(1));
  bool upper = c.node.integer("upper", 1) != 0;
  Value keep = c.compare(upper ? ComparePredicate::GE : ComparePredicate::LE, c.sub(column, row),
                         c.splat(indices, static_cast<double>(k)));
  return c.give(c.select(c.broadcastTo(keep, shape), x, c.splatLike(x, 0)));
}

Status concat(Conversion& c) {
  SmallVector<Value> values;
  for (size_t i = 0; i < c.count(); ++i)
    if (const HostTensor* host = c.constant(i);
        !host || host->size() > 0) // empty pieces add nothing
      values.push_back(TITAN_TRY(c.operand(i)));
  if (values.empty())
    return c.error("has no operands");
  int64_t axis = TITAN_TRY(c.axis(0, c.rankOf(values.front())));
  return c.give(TITAN_TRY(c.joined(values, axis)));
}

Status pad(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  std::string mode = c.node.text("mode", "constant");
  if (mode != "constant")
    return c.error("mode = '{}' is not supported: only constant is", printable(mode));
  int64_t rank = c.rankOf(x);
  std::vector<int64_t> pads;
  if (c.node.opset < 11)
    pads = c.node.integers("pads").value_or(std::vector<int64_t>());
  else
    pads = TITAN_TRY(c.list(1, "pads"));
  double value = c.node.opset < 11 ? c.node.real("value", 0) : 0;
  if (c.has(2))
    value = TITAN_TRY(c.scalar(2, "the padding value"));
  std::vector<int64_t> axes(llvm::seq<int64_t>(0, rank).begin(), llvm::seq<int64_t>(0, rank).end());
  if (c.has(3)) {
    axes = TITAN_TRY(c.list(3, "axes"));
    for (int64_t& axis : axes)
      axis = TITAN_TRY(normalizeAxis(c.node, axis, rank));
  }
  if (pads.size() != 2 * axes.size())
    return c.error("{} pads for {} axes", pads.size(), axes.size());
  // Negative pads cut; what is left is padded.
  Shape from = c.shapeOf(x), inner = from, outer;
  SmallVector<int64_t> offsets(rank, 0), low(rank, 0), high(rank, 0), ones(rank, 1), zeros(rank, 0);
  constexpr int64_t kMost = int64_t(1) << 40;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t begin = pads[i], end = pads[i + axes.size()], d = axes[i];
    if (begin > kMost || end > kMost || begin < -from[d] || end < -from[d] ||
        from[d] + std::min<int64_t>(begin, 0) + std::min<int64_t>(end, 0) <= 0)
      return c.error("pads {} and {} of dimension {} with extent {}", begin, end, d, from[d]);
    offsets[d] = std::max<int64_t>(-begin, 0);
    inner[d] = from[d] - offsets[d] - std::max<int64_t>(-end, 0);
    low[d] = std::max<int64_t>(begin, 0);
    high[d] = std::max<int64_t>(end, 0);
  }
  for (int64_t d = 0; d < rank; ++d)
    outer.push_back(inner[d] + low[d] + high[d]);
  TITAN_TRY(checkedElementCount(outer, c.node.shown()));
  x = c.slice(x, inner, offsets, ones);
  if (inner == outer)
    return c.give(x);
  return c.give(c.create<PadOp>(tensorType(x).clone(outer), x, c.builder.getDenseI64ArrayAttr(low),
                                c.builder.getDenseI64ArrayAttr(zeros),
                                c.builder.getF64FloatAttr(value)));
}

} // namespace

ArrayRef<ConverterEntry> movementConverters() {
  static const ConverterEntry table[] = {
      {"Concat", 4, concat, ""},
      {"Expand", 8, expand, "static target"},
      {"Flatten", 1, flatten, ""},
      {"Pad", 2, pad, "constant mode"},
      {"Reshape", 5, reshapeOp, "static target"},
      {"Squeeze", 1, squeeze, ""},
      {"Tile", 6, tile, "static repeats"},
      {"Transpose", 1, transposeOp, ""},
      {"Trilu", 14, trilu, "static k"},
      {"Unsqueeze", 1, unsqueeze, ""},
  };
  return table;
}

} // namespace titan::frontend
