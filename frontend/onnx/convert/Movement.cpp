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

/// 1 where column - row = k, of the operand's shape and, without `dtype`, of its type.
Status eyeLike(Conversion& c) {
  Value like = TITAN_TRY(c.operand(0));
  if (c.rankOf(like) != 2)
    return c.error("operand of rank {} is no matrix", c.rankOf(like));
  Type element = tensorType(like).getElementType();
  if (c.node.find("dtype")) {
    std::optional<DType> dtype = c.namedType("dtype");
    if (!dtype)
      return c.error("element type {} is not supported", onnxTypeName(c.node.integer("dtype", 0)));
    element = elementTypeOf(c.builder.getContext(), *dtype);
  }
  const Shape shape = c.shapeOf(like);
  const int64_t k = std::clamp(c.node.integer("k", 0), -shape[0], shape[1]);
  auto indices = RankedTensorType::get(shape, c.builder.getI64Type());
  Value row = c.create<IotaOp>(indices, c.builder.getI64IntegerAttr(0));
  Value column = c.create<IotaOp>(indices, c.builder.getI64IntegerAttr(1));
  Value isOn =
      c.compare(ComparePredicate::EQ, c.sub(column, row), c.splat(indices, static_cast<double>(k)));
  return c.give(c.convert(isOn, element));
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

/// `low` and `high` more elements along `axis`, the first and the last one repeated.
Result<Value> repeated(Conversion& c, Value x, int64_t axis, int64_t low, int64_t high) {
  const int64_t extent = c.shapeOf(x)[axis];
  SmallVector<Value> parts;
  const auto add = [&](int64_t from, int64_t count) {
    if (count == 0)
      return;
    Shape shape = c.shapeOf(x);
    shape[axis] = count;
    parts.push_back(c.broadcastTo(c.run(x, axis, from, 1), shape));
  };
  add(0, low);
  parts.push_back(x);
  add(extent - 1, high);
  return c.joined(parts, axis);
}

/// The same, mirrored in the first and the last one, which are not repeated themselves.
Result<Value> reflected(Conversion& c, Value x, int64_t axis, int64_t low, int64_t high) {
  const int64_t extent = c.shapeOf(x)[axis];
  if (low >= extent || high >= extent)
    return c.error("pads {} and {} reflect more of dimension {} than its extent {} has", low, high,
                   axis, extent);
  SmallVector<Value> parts;
  for (int64_t i = low; i > 0; --i)
    parts.push_back(c.run(x, axis, i, 1));
  parts.push_back(x);
  for (int64_t i = 1; i <= high; ++i)
    parts.push_back(c.run(x, axis, extent - 1 - i, 1));
  return c.joined(parts, axis);
}

/// The same, as if `x` were a circle: the last ones in front of the first, the first behind the
/// last.
Result<Value> wrapped(Conversion& c, Value x, int64_t axis, int64_t low, int64_t high) {
  const int64_t extent = c.shapeOf(x)[axis];
  if (low > extent || high > extent)
    return c.error("pads {} and {} wrap around more than the extent {} of dimension {}", low, high,
                   extent, axis);
  SmallVector<Value> parts;
  if (low > 0)
    parts.push_back(c.run(x, axis, extent - low, low));
  parts.push_back(x);
  if (high > 0)
    parts.push_back(c.run(x, axis, 0, high));
  return c.joined(parts, axis);
}

using Padding = Result<Value> (*)(Conversion&, Value, int64_t axis, int64_t low, int64_t high);

/// What fills a padding with elements of the operand; null for other modes.
Padding paddingOf(StringRef mode) {
  return llvm::StringSwitch<Padding>(mode)
      .Case("edge", repeated)
      .Case("reflect", reflected)
      .Case("wrap", wrapped)
      .Default(nullptr);
}

Status pad(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  std::string mode = c.node.text("mode", "constant");
  const Padding padding = paddingOf(mode);
  if (!padding && mode != "constant")
    return c.error("mode = '{}' is not known", printable(mode));
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
  if (padding) {
    for (int64_t d = 0; d < rank; ++d)
      if (low[d] > 0 || high[d] > 0)
        x = TITAN_TRY(padding(c, x, d, low[d], high[d]));
    return c.give(x);
  }
  return c.give(c.create<PadOp>(tensorType(x).clone(outer), x, c.builder.getDenseI64ArrayAttr(low),
                                c.builder.getDenseI64ArrayAttr(zeros),
                                c.builder.getF64FloatAttr(value)));
}

/// Of DepthToSpace and SpaceToDepth, whose operand is `x`.
Result<int64_t> blockSize(Conversion& c, Value x) {
  const int64_t block = c.node.integer("blocksize", 0);
  if (c.rankOf(x) != 4 || block < 1 || block > 1 << 20)
    return c.error("blocksize = {} for an operand of shape {}", block, toString(c.shapeOf(x)));
  return block;
}

/// [N, C b b, H, W] to [N, C, H b, W b]: torch.nn.PixelShuffle is mode CRD.
Status depthToSpace(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  const int64_t b = TITAN_TRY(blockSize(c, x));
  const Shape from = c.shapeOf(x);
  const int64_t n = from[0], depth = from[1] / (b * b), h = from[2], w = from[3];
  if (from[1] % (b * b) != 0)
    return c.error("{} channels are no multiple of blocksize {} squared", from[1], b);
  const std::string mode = c.node.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return c.error("mode = '{}' is not known", printable(mode));
  const bool blockFirst = mode == "DCR";
  x = c.reshaped(x, blockFirst ? Shape{n, b, b, depth, h, w} : Shape{n, depth, b, b, h, w});
  x = blockFirst ? c.transposed(x, {0, 3, 4, 1, 5, 2}) : c.transposed(x, {0, 1, 4, 2, 5, 3});
  return c.give(c.reshape(x, {n, depth, h * b, w * b}));
}

/// [N, C, H b, W b] to [N, b b C, H, W]
Status spaceToDepth(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  const int64_t b = TITAN_TRY(blockSize(c, x));
  const Shape from = c.shapeOf(x);
  const int64_t n = from[0], depth = from[1], h = from[2] / b, w = from[3] / b;
  if (from[2] % b != 0 || from[3] % b != 0)
    return c.error("{} x {} is no multiple of blocksize {}", from[2], from[3], b);
  x = c.transposed(c.reshaped(x, {n, depth, h, b, w, b}), {0, 3, 5, 1, 2, 4});
  return c.give(c.reshape(x, {n, b * b * depth, h, w}));
}

} // namespace

ArrayRef<ConverterEntry> movementConverters() {
  static const ConverterEntry table[] = {
      {"Concat", 4, concat, ""},
      {"DepthToSpace", 1, depthToSpace, ""},
      {"Expand", 8, expand, "static target"},
      {"EyeLike", 9, eyeLike, ""},
      {"Flatten", 1, flatten, ""},
      {"Pad", 2, pad, ""},
      {"Reshape", 5, reshapeOp, "static target"},
      {"SpaceToDepth", 1, spaceToDepth, ""},
      {"Squeeze", 1, squeeze, ""},
      {"Tile", 6, tile, "static repeats"},
      {"Transpose", 1, transposeOp, ""},
      {"Trilu", 14, trilu, "static k"},
      {"Unsqueeze", 1, unsqueeze, ""},
  };
  return table;
}

} // namespace titan::frontend
