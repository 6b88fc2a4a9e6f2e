// Convolutions, pools, columns of windows and local response normalisation: windows over the
// dimensions behind sample and channel. The ops of titan have channels last, so each stands between
// two transpositions; titan-import-fold-transposes moves them together.
#include "frontend/onnx/convert/Conversion.h"
#include "frontend/onnx/convert/Windows.h"
#include "frontend/onnx/name/Scopes.h"

#include <charconv>

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

/// [N, C, space...] to [N, space..., C].
Value channelsLast(Conversion& c, Value x) {
  SmallVector<int64_t> permutation = {0};
  llvm::append_range(permutation, llvm::seq<int64_t>(2, c.rankOf(x)));
  permutation.push_back(1);
  return c.transposed(x, permutation);
}

/// [N, space..., C] to [N, C, space...].
Value channelsFirst(Conversion& c, Value x) {
  SmallVector<int64_t> permutation = {0, c.rankOf(x) - 1};
  llvm::append_range(permutation, llvm::seq<int64_t>(1, c.rankOf(x) - 1));
  return c.transposed(x, permutation);
}

/// Operand 0, of three dimensions or more. Errors: others.
Result<Value> operandWithSpace(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  if (c.rankOf(x) < 3)
    return c.error("operand of shape {} has no space dimensions", toString(c.shapeOf(x)));
  return x;
}

/// What a convolution reads: [N, space..., C] and [O, taps..., C of a group].
struct Operands {
  Value x, kernel;
  int64_t groups;
};

Result<Operands> operandsOf(Conversion& c) {
  Value x = TITAN_TRY(operandWithSpace(c)), kernel = TITAN_TRY(c.operand(1));
  const Shape shape = c.shapeOf(x), taps = c.shapeOf(kernel);
  if (!c.isFloat(x) || tensorType(kernel).getElementType() != tensorType(x).getElementType())
    return c.error("operands must be floating and of one type");
  if (taps.size() != shape.size())
    return c.error("a kernel of shape {} for an operand of shape {}", toString(taps),
                   toString(shape));
  const int64_t groups = c.node.integer("group", 1);
  if (groups < 1)
    return c.error("group = {}", groups);
  return Operands{x, kernel, groups};
}

/// Operand 2, [O], added behind the convolution. A bias of zeros is one that the exporter made up:
/// PyTorch's has two dimensions behind a strided convolution of three.
Result<Value> withBias(Conversion& c, Value y) {
  if (!c.has(2))
    return y;
  Value bias = TITAN_TRY(c.operand(2));
  DenseElementsAttr constant;
  if (auto known = bias.getDefiningOp<ConstantOp>())
    constant = dyn_cast<DenseElementsAttr>(known.getValue());
  if (constant && constant.isSplat() && isa<FloatType>(constant.getElementType()) &&
      constant.getSplatValue<APFloat>().isZero())
    return y;
  const int64_t channels = c.shapeOf(y).back();
  if (c.shapeOf(bias) != Shape{channels} ||
      tensorType(bias).getElementType() != tensorType(y).getElementType())
    return c.error("a bias of shape {} for {} channels", toString(c.shapeOf(bias)), channels);
  return c.add(y, c.broadcast(bias, c.shapeOf(y), c.rankOf(y) - 1));
}

template <typename Op>
Value create(Conversion& c, Value a, Value b, Shape shape, const WindowDims& dims, int64_t groups) {
  Type element = tensorType(a).getElementType();
  auto type = RankedTensorType::get(shape, accumulationType(element));
  auto list = [&](const std::vector<int64_t>& values) {
    return c.builder.getDenseI64ArrayAttr(values);
  };
  Value result = c.create<Op>(type, a, b, list(dims.strides), list(dims.low), list(dims.high),
                              list(dims.dilations), c.builder.getI64IntegerAttr(groups));
  return c.convert(result, element);
}

/// [N, extents..., channels]
Shape lastShape(int64_t batch, const std::vector<int64_t>& extents, int64_t channels) {
  Shape shape = {batch};
  shape.insert(shape.end(), extents.begin(), extents.end());
  shape.push_back(channels);
  return shape;
}

/// X [N, g C, space...], W [g O, C, taps...] and B [g O] give [N, g O, positions...].
Status conv(Conversion& c) {
  Operands of = TITAN_TRY(operandsOf(c));
  const Shape x = c.shapeOf(of.x), kernel = c.shapeOf(of.kernel);
  if (x[1] % of.groups != 0 || kernel[0] % of.groups != 0 || kernel[1] * of.groups != x[1])
    return c.error("group = {} does not divide {} channels into kernels of {}, and {} kernels",
                   of.groups, x[1], kernel[1], kernel[0]);
  const WindowDims dims = TITAN_TRY(windowsOf(c, x, Shape(kernel.begin() + 2, kernel.end())));
  TITAN_TRY(checkedElementCount(lastShape(x[0], dims.positions, kernel[0]), c.node.shown()));
  Value y = create<ConvolutionOp>(c, channelsLast(c, of.x), channelsLast(c, of.kernel),
                                  lastShape(x[0], dims.positions, kernel[0]), dims, of.groups);
  return c.give(channelsFirst(c, TITAN_TRY(withBias(c, y))));
}

/// X [N, g O, positions...], W [g O, C, taps...] and B [g C] give [N, g C, space...]: the adjoint
/// of a convolution's operand.
Status convTranspose(Conversion& c) {
  Operands of = TITAN_TRY(operandsOf(c));
  const Shape x = c.shapeOf(of.x), kernel = c.shapeOf(of.kernel);
  if (kernel[0] != x[1] || x[1] % of.groups != 0)
    return c.error("{} kernels in {} groups for {} channels", kernel[0], of.groups, x[1]);
  const TransposedWindows dims =
      TITAN_TRY(transposedWindowsOf(c, x, Shape(kernel.begin() + 2, kernel.end())));
  const Shape shape = lastShape(x[0], dims.extents, kernel[1] * of.groups);
  Shape padded = shape;
  for (auto [d, zeros] : llvm::enumerate(dims.zeros))
    padded[d + 1] += zeros;
  TITAN_TRY(checkedElementCount(padded, c.node.shown()));
  Value y = create<ConvolutionInputGradOp>(c, channelsLast(c, of.x), channelsLast(c, of.kernel),
                                           shape, dims.windows, of.groups);
  if (padded != shape) {
    auto none = c.builder.getDenseI64ArrayAttr(SmallVector<int64_t>(shape.size(), 0));
    y = c.create<PadOp>(tensorType(y).clone(padded), y, none, none, c.builder.getF64FloatAttr(0));
  }
  return c.give(channelsFirst(c, TITAN_TRY(withBias(c, y))));
}

/// A pool of `x` [N, space..., C] over the windows of `dims`.
Value pool(Conversion& c, ReduceKind kind, Value x, const WindowDims& dims) {
  auto list = [&](const std::vector<int64_t>& values, int64_t other) {
    std::vector<int64_t> all = {other};
    all.insert(all.end(), values.begin(), values.end());
    all.push_back(other);
    return c.builder.getDenseI64ArrayAttr(all);
  };
  const Shape shape = c.shapeOf(x);
  return c.create<PoolOp>(
      tensorType(x).clone(lastShape(shape.front(), dims.positions, shape.back())), kind, x,
      list(dims.taps, 1), list(dims.strides, 1), list(dims.low, 0), list(dims.high, 0),
      list(dims.dilations, 1));
}

Status maxPool(Conversion& c) {
  if (c.wants(1))
    return c.error("its indices are read, which is not supported");
  Value x = TITAN_TRY(operandWithSpace(c));
  const WindowDims dims = TITAN_TRY(poolWindowsOf(c, c.shapeOf(x)));
  return c.give(channelsFirst(c, pool(c, ReduceKind::Max, channelsLast(c, x), dims)));
}

/// ONNX has no `divisor_override`, and PyTorch's exporters leave it out without a word; the text of
/// the source's call has it. Nothing: the elements of a window are counted.
Result<std::optional<int64_t>> averageDivisor(Conversion& c) {
  const std::string text = scopeOf(c.node).averageDivisor;
  if (text.empty() || text == "None")
    return std::optional<int64_t>();
  int64_t value = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, value).ptr != end || value == 0)
    return c.error(
        "divisor_override = '{}' of the source is not a number other than 0: sum the windows, and "
        "divide by it",
        printable(text));
  return std::optional(value);
}

/// What the sum over each window is multiplied with.
Result<std::vector<double>> averageShares(Conversion& c, const WindowDims& dims) {
  if (std::optional<int64_t> divisor = TITAN_TRY(averageDivisor(c)))
    return std::vector{1 / static_cast<double>(*divisor)};
  return dims.shares(c.node.integer("count_include_pad", 0) != 0);
}

/// The sum over each window by the number of its elements: those of the operand, or, with
/// count_include_pad, those of the padding too.
Status averagePool(Conversion& c) {
  Value x = TITAN_TRY(operandWithSpace(c));
  if (!c.isFloat(x))
    return c.error("operand is not floating");
  const WindowDims dims = TITAN_TRY(poolWindowsOf(c, c.shapeOf(x)));
  Value sum = pool(c, ReduceKind::Sum, channelsLast(c, x), dims);
  const std::vector<double> shares = TITAN_TRY(averageShares(c, dims));
  if (llvm::all_equal(shares))
    return c.give(channelsFirst(c, c.scale(sum, shares.front())));
  auto type = RankedTensorType::get(dims.positions, tensorType(x).getElementType());
  Value factors = c.TensorBuilder::constant(type, shares);
  SmallVector<int64_t> space = llvm::to_vector(llvm::seq<int64_t>(1, c.rankOf(x) - 1));
  return c.give(channelsFirst(c, c.mul(sum, c.broadcast(factors, c.shapeOf(sum), space))));
}

/// One window over all of space, so that the gradient goes to the first maximum.
Status globalMaxPool(Conversion& c) {
  Value x = TITAN_TRY(operandWithSpace(c));
  const Shape shape = c.shapeOf(x);
  WindowDims dims;
  for (auto extent = shape.begin() + 2; extent != shape.end(); ++extent)
    dims.append({.taps = *extent, .extent = *extent});
  dims.positions.assign(dims.taps.size(), 1);
  return c.give(channelsFirst(c, pool(c, ReduceKind::Max, channelsLast(c, x), dims)));
}

/// Dimensions `axis`, a window's taps, and the next one, its positions, as one: the sum of what
/// stands at each element of the operand that the windows were taken of.
Value overlapAdd(Conversion& c, Value x, int64_t axis, const WindowDims& dims, size_t d) {
  Shape piece = c.shapeOf(x), padded;
  piece.erase(piece.begin() + axis);
  padded = piece;
  padded[axis] = dims.low[d] + dims.extents[d] + dims.high[d];
  SmallVector<int64_t> low(piece.size(), 0), interior(piece.size(), 0);
  interior[axis] = dims.strides[d] - 1;
  Value sum;
  for (int64_t tap = 0; tap < dims.taps[d]; ++tap) {
    Value part = c.reshape(c.run(x, axis, tap, 1), piece);
    low[axis] = tap * dims.dilations[d];
    Value placed =
        c.create<PadOp>(tensorType(x).clone(padded), part, c.builder.getDenseI64ArrayAttr(low),
                        c.builder.getDenseI64ArrayAttr(interior), c.builder.getF64FloatAttr(0));
    sum = sum ? c.add(sum, placed) : placed;
  }
  return c.run(sum, axis, dims.low[d], dims.extents[d]);
}

/// X [N, C taps, positions] gives [N, C, space...]: the adjoint of taking windows.
Status columnsToImage(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  const Shape shape = c.shapeOf(x);
  const std::vector<int64_t> extents = TITAN_TRY(c.list(1, "image_shape")),
                             taps = TITAN_TRY(c.list(2, "block_shape"));
  const auto isPositive = [](int64_t extent) { return extent > 0 && extent < 1 << 20; };
  const int64_t size = llvm::all_of(taps, isPositive) ? elementCount(taps) : 0;
  if (shape.size() != 3 || taps.empty() || taps.size() != extents.size() ||
      !llvm::all_of(extents, isPositive) || size == 0 || shape[1] % size != 0)
    return c.error("an operand of shape {} with blocks of {} in an image of {}", toString(shape),
                   toString(taps), toString(extents));
  Shape image = {shape[0], shape[1] / size};
  image.insert(image.end(), extents.begin(), extents.end());
  TITAN_TRY(checkedElementCount(image, c.node.shown()));
  const WindowDims dims = TITAN_TRY(windowsOf(c, image, taps));
  if (shape[2] != elementCount(dims.positions))
    return c.error("{} columns for blocks at {} positions", shape[2], toString(dims.positions));
  Shape split = {image[0], image[1]};
  split.insert(split.end(), taps.begin(), taps.end());
  split.insert(split.end(), dims.positions.begin(), dims.positions.end());
  const auto rank = static_cast<int64_t>(taps.size());
  SmallVector<int64_t> order = {0, 1}; // taps and positions by turns
  for (int64_t d = 0; d < rank; ++d)
    llvm::append_values(order, 2 + d, 2 + rank + d);
  x = c.transposed(c.reshaped(x, split), order);
  for (int64_t d = 0; d < rank; ++d)
    x = overlapAdd(c, x, 2 + d, dims, static_cast<size_t>(d));
  return c.give(x);
}

/// x / (bias + alpha / size * sum of x^2 over `size` channels around it)^beta
Status localResponse(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  if (c.rankOf(x) < 3)
    return c.error("operand of shape {} has no space dimensions", toString(c.shapeOf(x)));
  const int64_t size = c.node.integer("size", 0);
  if (size < 1 || size > 1 << 20)
    return c.error("size = {}", size);
  x = channelsLast(c, x);
  const auto rank = static_cast<size_t>(c.rankOf(x));
  SmallVector<int64_t> window(rank, 1), ones(rank, 1), low(rank, 0), high(rank, 0);
  window.back() = size;
  low.back() = (size - 1) / 2;
  high.back() = size - 1 - low.back();
  Value sum = c.create<PoolOp>(x.getType(), ReduceKind::Sum, c.mul(x, x), ArrayRef(window),
                               ArrayRef(ones), ArrayRef(low), ArrayRef(high), ArrayRef(ones));
  Value base = c.shift(c.scale(sum, c.node.real("alpha", 1e-4) / static_cast<double>(size)),
                       c.node.real("bias", 1));
  Value power = c.create<PowOp>(base, c.splatLike(base, -c.node.real("beta", 0.75)));
  return c.give(channelsFirst(c, c.mul(x, power)));
}

} // namespace

ArrayRef<ConverterEntry> convolutionConverters() {
  static const ConverterEntry table[] = {
      {"AveragePool", 1, averagePool, ""},
      {"Col2Im", 18, columnsToImage, ""},
      {"Conv", 1, conv, ""},
      {"ConvTranspose", 1, convTranspose, ""},
      {"GlobalMaxPool", 1, globalMaxPool, ""},
      {"LRN", 1, localResponse, ""},
      {"MaxPool", 1, maxPool, "without its indices"},
  };
  return table;
}

} // namespace titan::frontend
