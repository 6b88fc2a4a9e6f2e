#include "frontend/nn/Layers.h"

#include "frontend/nn/Builder.h"

#include <cmath>

using namespace mlir;

namespace titan::nn {

using namespace ir;

namespace {

ir::TensorBuilder at(const Scope& scope) { return scope.builder().at(scope); }
Value in(Tensor tensor) { return Builder::valueOf(tensor); }
Tensor out(Value value) { return Builder::tensorOf(value); }

bool isFloat(Tensor x) { return isa<FloatType>(tensorType(in(x)).getElementType()); }

/// Has `x` a value of floats, of at least `rank` dimensions? If it has one of others, the model
/// fails: `layer` wants what `wanted` says.
bool takes(const Scope& scope, const char* layer, Tensor x, int64_t rank, const char* wanted) {
  if (!x)
    return false;
  if (isFloat(x) && x.rank() >= rank)
    return true;
  const char* kind = isFloat(x) ? "" : " integers";
  (void)scope.fail(
      fmt::format("{} of {}{}, where {} is expected", layer, toString(x.shape()), kind, wanted));
  return false;
}

template <typename Op> Tensor unary(const Scope& scope, const char* layer, Tensor x) {
  return takes(scope, layer, x, 0, "a tensor of floats") ? out(at(scope).create<Op>(in(x)))
                                                         : Tensor();
}

/// `b`, whose dimensions are the last ones of `a`, as large as `a`.
Tensor repeated(const Scope& scope, const char* layer, Tensor a, Tensor b) {
  if (!a || !b)
    return {};
  const Shape large = a.shape(), small = b.shape();
  const bool fits = small.size() <= large.size() &&
                    std::equal(small.rbegin(), small.rend(), large.rbegin()) && isFloat(a) &&
                    isFloat(b);
  if (!fits)
    return scope.fail(fmt::format("{} of {} and {}: shapes must be equal, or the second the end "
                                  "of the first",
                                  layer, toString(large), toString(small)));
  if (small.size() == large.size())
    return b;
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(a.rank() - b.rank(), a.rank()));
  return out(at(scope).broadcast(in(b), large, dims));
}

template <typename Op> Tensor binary(const Scope& scope, const char* layer, Tensor a, Tensor b) {
  b = repeated(scope, layer, a, b);
  return a && b ? out(at(scope).create<Op>(in(a), in(b))) : Tensor();
}

/// `dim` counted from the front; nothing, after an error, where `x` has none such.
std::optional<int64_t> dimOf(const Scope& scope, const char* layer, Tensor x, int64_t dim) {
  if (!x)
    return std::nullopt;
  const int64_t index = dim < 0 ? dim + x.rank() : dim;
  if (index >= 0 && index < x.rank())
    return index;
  (void)scope.fail(fmt::format("{} along dimension {} of {}", layer, dim, toString(x.shape())));
  return std::nullopt;
}

/// `x` multiplied by `weight`, whose dimension `contracting` are the inputs.
Tensor multiplied(const Scope& scope, Tensor x, Tensor weight, int64_t contracting) {
  return out(at(scope).create<ContractOp>(in(x), in(weight), Value(), ArrayRef<int64_t>(),
                                          ArrayRef<int64_t>(), ArrayRef<int64_t>(x.rank() - 1),
                                          ArrayRef<int64_t>(contracting)));
}

} // namespace

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

Tensor add(const Scope& scope, Tensor a, Tensor b) { return binary<AddOp>(scope, "add", a, b); }
Tensor sub(const Scope& scope, Tensor a, Tensor b) { return binary<SubOp>(scope, "sub", a, b); }
Tensor mul(const Scope& scope, Tensor a, Tensor b) { return binary<MulOp>(scope, "mul", a, b); }

Tensor scale(const Scope& scope, Tensor x, double factor) {
  return takes(scope, "scale", x, 0, "a tensor of floats") ? out(at(scope).scale(in(x), factor))
                                                           : Tensor();
}

Tensor relu(const Scope& scope, Tensor x) { return unary<ReluOp>(scope, "relu", x); }
Tensor tanh(const Scope& scope, Tensor x) { return unary<TanhOp>(scope, "tanh", x); }
Tensor sigmoid(const Scope& scope, Tensor x) { return unary<SigmoidOp>(scope, "sigmoid", x); }
Tensor silu(const Scope& scope, Tensor x) { return unary<SiluOp>(scope, "silu", x); }

Tensor gelu(const Scope& scope, Tensor x, GeluForm form) {
  if (!takes(scope, "gelu", x, 0, "a tensor of floats"))
    return {};
  return out(at(scope).create<GeluOp>(in(x), form == GeluForm::Tanh ? ir::GeluForm::Tanh
                                                                    : ir::GeluForm::Erf));
}

Tensor dropout(const Scope& scope, Tensor x, double p) {
  if (!(p >= 0 && p < 1))
    return scope.fail(fmt::format("dropout of p = {}, which must be in [0, 1)", p));
  if (!takes(scope, "dropout", x, 1, "a tensor of floats"))
    return {};
  if (p == 0)
    return x;
  ir::TensorBuilder b = at(scope);
  return out(b.create<DropoutOp>(in(x).getType(), in(x), Value(), Value(), Value(),
                                 b.builder.getF64FloatAttr(p),
                                 b.builder.getI64IntegerAttr(scope.builder().nextStream(scope)),
                                 DenseI64ArrayAttr(), WindowAttr()));
}

//===----------------------------------------------------------------------===//
// Movement and sums
//===----------------------------------------------------------------------===//

Tensor reshape(const Scope& scope, Tensor x, const Shape& shape) {
  if (!x)
    return {};
  Shape target = shape;
  int64_t known = 1;
  for (int64_t extent : shape)
    known *= extent == -1 ? 1 : std::max<int64_t>(extent, 0);
  const int64_t all = elementCount(x.shape());
  if (auto open = llvm::find(target, -1); open != target.end() && known > 0)
    *open = all / known;
  if (llvm::any_of(target, [](int64_t extent) { return extent < 1; }) ||
      elementCount(target) != all)
    return scope.fail(fmt::format("reshape of {} ({} elements) to {}", toString(x.shape()), all,
                                  toString(shape)));
  return out(at(scope).reshape(in(x), target));
}

Tensor transpose(const Scope& scope, Tensor x, const Shape& permutation) {
  if (!x)
    return {};
  Shape sorted = permutation;
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, x.rank())))
    return scope.fail(fmt::format("transpose of {} by {}, which is no order of its dimensions",
                                  toString(x.shape()), toString(permutation)));
  return llvm::is_sorted(permutation) ? x : out(at(scope).transpose(in(x), permutation));
}

Tensor slice(const Scope& scope, Tensor x, int64_t dim, int64_t begin, int64_t count) {
  std::optional<int64_t> d = dimOf(scope, "slice", x, dim);
  if (!d)
    return {};
  const int64_t extent = x.extent(*d);
  if (begin < 0 || count < 1 || begin > extent - count)
    return scope.fail(fmt::format("slice of {} elements from {} along dimension {} of {}", count,
                                  begin, dim, toString(x.shape())));
  if (count == extent)
    return x;
  Shape shape = x.shape(), offsets(shape.size(), 0), strides(shape.size(), 1);
  shape[static_cast<size_t>(*d)] = count;
  offsets[static_cast<size_t>(*d)] = begin;
  return out(at(scope).create<SliceOp>(tensorType(in(x)).clone(shape), in(x), ArrayRef(offsets),
                                       ArrayRef(strides)));
}

Tensor concat(const Scope& scope, const std::vector<Tensor>& values, int64_t dim) {
  if (values.empty())
    return scope.fail("concat of nothing");
  if (!llvm::all_of(values, [](Tensor value) { return static_cast<bool>(value); }))
    return {};
  std::optional<int64_t> d = dimOf(scope, "concat", values.front(), dim);
  if (!d)
    return {};
  const auto without = [&](Tensor value) {
    Shape shape = value.shape();
    if (*d < value.rank())
      shape.erase(shape.begin() + *d);
    return shape;
  };
  SmallVector<Value> operands;
  for (Tensor value : values) {
    if (value.rank() != values.front().rank() || without(value) != without(values.front()) ||
        tensorType(in(value)).getElementType() != tensorType(in(values.front())).getElementType())
      return scope.fail(fmt::format("concat of {} and {} along dimension {}",
                                    toString(values.front().shape()), toString(value.shape()),
                                    dim));
    operands.push_back(in(value));
  }
  return operands.size() == 1 ? values.front()
                              : out(at(scope).create<ConcatOp>(ValueRange(operands), *d));
}

Tensor sum(const Scope& scope, Tensor x, const Shape& dims) {
  SmallVector<int64_t> sorted;
  if (!takes(scope, "sum", x, 0, "a tensor of floats"))
    return {};
  for (int64_t dim : dims) {
    std::optional<int64_t> d = dimOf(scope, "sum", x, dim);
    if (!d)
      return {};
    sorted.push_back(*d);
  }
  llvm::sort(sorted);
  if (llvm::adjacent_find(sorted) != sorted.end())
    return scope.fail(fmt::format("sum over {} of {}: a dimension is there twice", toString(dims),
                                  toString(x.shape())));
  return sorted.empty() ? x : out(at(scope).reduce(ReduceKind::Sum, in(x), sorted));
}

Tensor mean(const Scope& scope, Tensor x, const Shape& dims) {
  Tensor total = sum(scope, x, dims);
  if (!total)
    return {};
  return scale(scope, total,
               static_cast<double>(elementCount(total.shape())) /
                   static_cast<double>(elementCount(x.shape())));
}

Tensor softmax(const Scope& scope, Tensor x, int64_t dim) {
  if (!takes(scope, "softmax", x, 1, "a tensor of floats"))
    return {};
  std::optional<int64_t> d = dimOf(scope, "softmax", x, dim);
  if (!d)
    return {};
  ir::TensorBuilder b = at(scope);
  return out(b.create<SoftmaxOp>(in(x), b.builder.getI64IntegerAttr(*d)));
}

Tensor channelsLast(const Scope& scope, Tensor x) {
  if (!takes(scope, "channelsLast", x, 3, "[N, C, space...]"))
    return {};
  Shape permutation = {0};
  for (int64_t d = 2; d < x.rank(); ++d)
    permutation.push_back(d);
  permutation.push_back(1);
  return transpose(scope, x, permutation);
}

//===----------------------------------------------------------------------===//
// Linear layers and tables
//===----------------------------------------------------------------------===//

Tensor linear(const Scope& scope, Tensor x, int64_t outputs, const LinearOptions& options) {
  if (!takes(scope, "linear", x, 1, "[..., inputs]"))
    return {};
  if (outputs < 1)
    return scope.fail(fmt::format("linear to {} outputs", outputs));
  const int64_t inputs = x.extent(-1);
  const bool outIn = options.layout == MatrixLayout::OutIn;
  Tensor weight = scope.parameter("weight", outIn ? Shape{outputs, inputs} : Shape{inputs, outputs},
                                  options.weightInit.value_or(Init::fanIn(inputs)));
  Tensor bias = options.bias
                    ? scope.parameter("bias", {outputs}, options.biasInit.value_or(Init::zeros()))
                    : Tensor();
  if (scope.builder().hasFailed())
    return {};
  Tensor y = multiplied(scope, x, weight, outIn ? 1 : 0);
  return bias ? add(scope, y, bias) : y;
}

Tensor project(const Scope& scope, Tensor x, Tensor weight) {
  if (!x || !weight)
    return {};
  if (!isFloat(x) || !isFloat(weight) || x.rank() < 1 || weight.rank() != 2 ||
      x.extent(-1) != weight.extent(1))
    return scope.fail(fmt::format("projection of {} by a matrix of {}: {} inputs against {}",
                                  toString(x.shape()), toString(weight.shape()), x.extent(-1),
                                  weight.extent(1)));
  return multiplied(scope, x, weight, 1);
}

Tensor lookUp(const Scope& scope, Tensor table, Tensor indices) {
  if (!table || !indices)
    return {};
  if (table.rank() < 1 || isFloat(indices))
    return scope.fail(fmt::format("look-up in {} at {}{}, where integers are expected",
                                  toString(table.shape()), toString(indices.shape()),
                                  isFloat(indices) ? " floats" : ""));
  return out(at(scope).create<EmbeddingOp>(in(table), in(indices)));
}

Tensor embedding(const Scope& scope, Tensor indices, int64_t rows, int64_t width, Init init) {
  return lookUp(scope, scope.parameter("weight", {rows, width}, init), indices);
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

Tensor layerNorm(const Scope& scope, Tensor x, const NormOptions& options) {
  if (!takes(scope, "layerNorm", x, 1, "[..., width]"))
    return {};
  const Shape width = {x.extent(-1)};
  Tensor weight = scope.parameter("weight", width, Init::ones());
  Tensor bias = options.bias ? scope.parameter("bias", width, Init::zeros()) : Tensor();
  if (scope.builder().hasFailed())
    return {};
  return out(at(scope)
                 .create<LayerNormOp>(in(x), in(weight), in(bias), ArrayRef<int64_t>(x.rank() - 1),
                                      options.epsilon)
                 .getResult());
}

Tensor rmsNorm(const Scope& scope, Tensor x, double epsilon) {
  if (!takes(scope, "rmsNorm", x, 1, "[..., width]"))
    return {};
  Tensor weight = scope.parameter("weight", {x.extent(-1)}, Init::ones());
  if (!weight)
    return {};
  return out(at(scope).create<RmsNormOp>(in(x), in(weight), x.rank() - 1, epsilon).getResult());
}

Tensor groupNorm(const Scope& scope, Tensor x, int64_t groups, const NormOptions& options) {
  if (!takes(scope, "groupNorm", x, 2, "[N, space..., C]"))
    return {};
  const int64_t channels = x.extent(-1);
  if (groups < 1 || channels % groups != 0)
    return scope.fail(fmt::format("groupNorm: {} channels in {} groups", channels, groups));
  const Shape shape = x.shape();
  Shape split(shape.begin(), shape.end() - 1);
  split.insert(split.end(), {groups, channels / groups});
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(1, x.rank() - 1));
  dims.push_back(x.rank());
  Tensor weight = scope.parameter("weight", {channels}, Init::ones());
  Tensor bias = options.bias ? scope.parameter("bias", {channels}, Init::zeros()) : Tensor();
  Tensor groupsApart = reshape(scope, x, split);
  if (scope.builder().hasFailed())
    return {};
  Tensor normed =
      out(at(scope)
              .create<LayerNormOp>(in(groupsApart), Value(), Value(), dims, options.epsilon)
              .getResult());
  Tensor y = mul(scope, reshape(scope, normed, shape), weight);
  return bias ? add(scope, y, bias) : y;
}

Tensor batchNorm(const Scope& scope, Tensor x, const BatchNormOptions& options) {
  if (!takes(scope, "batchNorm", x, 2, "[N, ..., C]"))
    return {};
  const int64_t channels = x.extent(-1);
  if (elementCount(x.shape()) / channels < 2)
    return scope.fail(fmt::format("batchNorm of {}: one element for each channel, of which there "
                                  "is no statistic",
                                  toString(x.shape())));
  const Shape shape = {channels};
  Tensor weight = scope.parameter("weight", shape, Init::ones());
  Tensor bias = scope.parameter("bias", shape, Init::zeros());
  Tensor mean = scope.buffer("running_mean", shape, Init::zeros());
  Tensor variance = scope.buffer("running_var", shape, Init::ones());
  Tensor batches = scope.buffer("num_batches_tracked", {}, Init::zeros(), DType::I64);
  if (scope.builder().hasFailed())
    return {};
  ir::TensorBuilder b = at(scope);
  auto statistic = RankedTensorType::get(shape, b.builder.getF32Type());
  return out(b.create<BatchNormOp>(TypeRange{in(x).getType(), statistic, statistic}, in(x),
                                   in(weight), in(bias), ValueRange{in(mean), in(variance)},
                                   in(batches), b.builder.getI64IntegerAttr(x.rank() - 1),
                                   b.builder.getF64FloatAttr(options.epsilon),
                                   b.builder.getF64FloatAttr(options.momentum),
                                   b.builder.getUnitAttr())
                 .getResult());
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

Tensor attention(const Scope& scope, Tensor query, Tensor key, Tensor value,
                 const AttentionOptions& options) {
  if (!query || !key || !value)
    return {};
  const auto hasHeads = [](Tensor x) { return x.rank() == 4 && isFloat(x); };
  const bool fits = hasHeads(query) && hasHeads(key) && hasHeads(value) &&
                    query.extent(0) == key.extent(0) && query.extent(3) == key.extent(3) &&
                    key.extent(0) == value.extent(0) && key.extent(1) == value.extent(1) &&
                    key.extent(2) == value.extent(2);
  if (!fits)
    return scope.fail(fmt::format("attention of {}, {} and {}, where [N, T, H, D], [N, S, G, D] "
                                  "and [N, S, G, E] are expected",
                                  toString(query.shape()), toString(key.shape()),
                                  toString(value.shape())));
  if (query.extent(2) % key.extent(2) != 0)
    return scope.fail(fmt::format("attention: {} heads of keys do not divide {} heads of queries",
                                  key.extent(2), query.extent(2)));
  if (!(options.dropout >= 0 && options.dropout < 1))
    return scope.fail(
        fmt::format("attention with dropout of p = {}, which must be in [0, 1)", options.dropout));
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(query.extent(3))));
  auto op = at(scope).create<AttentionOp>(in(query), in(key), in(value), Value(), scale,
                                          options.causal, FloatAttr());
  if (options.dropout > 0) {
    op.setP(APFloat(options.dropout));
    op.setStream(static_cast<uint64_t>(scope.builder().nextStream(scope)));
  }
  return out(op.getResult());
}

Tensor rotary(const Scope& scope, Tensor x, double theta) {
  if (!x)
    return {};
  if (!isFloat(x) || x.rank() != 4 || x.extent(3) % 2 != 0)
    return scope.fail(fmt::format("rotary positions of {}, where [N, T, H, D] with an even D is "
                                  "expected",
                                  toString(x.shape())));
  const int64_t length = x.extent(1), pairs = x.extent(3) / 2;
  std::vector<double> cos, sin;
  for (int64_t position = 0; position < length; ++position)
    for (int64_t i = 0; i < pairs; ++i) {
      // As torch.float32 rounds it: far positions have other angles in f64.
      const float power = static_cast<float>(2 * i) / static_cast<float>(2 * pairs);
      const float speed = 1.0F / std::pow(static_cast<float>(theta), power);
      const float angle = static_cast<float>(position) * speed;
      cos.push_back(static_cast<double>(std::cos(angle)));
      sin.push_back(static_cast<double>(std::sin(angle)));
    }
  ir::TensorBuilder b = at(scope);
  auto type = RankedTensorType::get({length, pairs}, b.builder.getF32Type());
  return out(b.create<RotaryOp>(in(x).getType(), in(x), b.constant(type, cos),
                                b.constant(type, sin), UnitAttr()));
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Tensor geluBlock(const Scope& scope, Tensor x, int64_t hidden, const GeluBlockOptions& options) {
  const int64_t width = x.extent(-1);
  Tensor y = linear(scope.child(options.up), x, hidden, options.upOptions);
  return linear(scope.child(options.down), gelu(scope, y, options.form), width,
                options.downOptions);
}

Tensor swiGluBlock(const Scope& scope, Tensor x, int64_t hidden, const SwiGluOptions& options) {
  const int64_t width = x.extent(-1);
  Tensor gate = silu(scope, linear(scope.child(options.gate), x, hidden, options.inOptions));
  Tensor up = linear(scope.child(options.up), x, hidden, options.inOptions);
  return linear(scope.child(options.down), mul(scope, gate, up), width, options.downOptions);
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

namespace {

/// Windows over the space dimensions of an operand.
struct WindowLists {
  Shape taps, strides, padding, dilations, positions;
};

/// Nothing, after an error, if there is no window in the padded operand or a list is of another
/// length than the dimensions of space.
std::optional<WindowLists> windowsOver(const Scope& scope, const char* layer, Tensor x,
                                       const Shape& taps, const Shape& strides,
                                       const Shape& padding, const Shape& dilations) {
  const size_t space = static_cast<size_t>(x.rank()) - 2;
  const auto orAll = [&](const Shape& list, int64_t value) {
    return list.empty() ? Shape(space, value) : list;
  };
  WindowLists windows = {taps, orAll(strides, 1), orAll(padding, 0), orAll(dilations, 1), {}};
  const auto refuse = [&](const std::string& why) {
    (void)scope.fail(fmt::format("{} of {} by windows of {}: {}", layer, toString(x.shape()),
                                 toString(taps), why));
    return std::nullopt;
  };
  for (const Shape* list : {&windows.taps, &windows.strides, &windows.padding, &windows.dilations})
    if (list->size() != space)
      return refuse(fmt::format("{} has {} numbers for {} dimensions of space", toString(*list),
                                list->size(), space));
  for (size_t d = 0; d < space; ++d) {
    const int64_t least = std::min({windows.taps[d], windows.strides[d], windows.dilations[d]});
    if (least < 1 || windows.padding[d] < 0)
      return refuse("windows, strides and dilations must be positive, and padding not negative");
    const int64_t extent = x.extent(static_cast<int64_t>(d) + 1) + 2 * windows.padding[d];
    const int64_t covered = windows.dilations[d] * (windows.taps[d] - 1) + 1;
    if (covered > extent)
      return refuse(fmt::format("a window covers {} elements, and there are {} with padding",
                                covered, extent));
    windows.positions.push_back((extent - covered) / windows.strides[d] + 1);
  }
  return windows;
}

/// [N, positions..., channels]
Shape resultShape(Tensor x, const WindowLists& windows, int64_t channels) {
  Shape shape = {x.extent(0)};
  shape.insert(shape.end(), windows.positions.begin(), windows.positions.end());
  shape.push_back(channels);
  return shape;
}

Tensor pool(const Scope& scope, const char* layer, ReduceKind kind, Tensor x, const Shape& window,
            const PoolOptions& options) {
  if (!takes(scope, layer, x, 3, "[N, space..., C]"))
    return {};
  auto windows =
      windowsOver(scope, layer, x, window, options.strides.empty() ? window : options.strides,
                  options.padding, {});
  if (!windows)
    return {};
  for (size_t d = 0; d < window.size(); ++d)
    if (2 * windows->padding[d] > window[d]) // a window would lie in the padding alone
      return scope.fail(fmt::format("{}: padding of {} for a window of {}: at most half of it",
                                    layer, windows->padding[d], window[d]));
  const auto list = [](const Shape& values, int64_t other) {
    Shape all = {other};
    all.insert(all.end(), values.begin(), values.end());
    all.push_back(other);
    return all;
  };
  const Shape low = list(windows->padding, 0);
  return out(at(scope).create<PoolOp>(
      tensorType(in(x)).clone(resultShape(x, *windows, x.extent(-1))), kind, in(x),
      ArrayRef<int64_t>(list(windows->taps, 1)), ArrayRef<int64_t>(list(windows->strides, 1)),
      ArrayRef<int64_t>(low), ArrayRef<int64_t>(low),
      ArrayRef<int64_t>(list(windows->dilations, 1))));
}

} // namespace

Tensor convolution(const Scope& scope, Tensor x, int64_t outputs, const Shape& kernel,
                   const ConvolutionOptions& options) {
  if (!takes(scope, "convolution", x, 3, "[N, space..., C]"))
    return {};
  const int64_t channels = x.extent(-1), groups = options.groups;
  if (outputs < 1 || groups < 1 || channels % groups != 0 || outputs % groups != 0)
    return scope.fail(
        fmt::format("convolution of {} to {} channels in {} groups", channels, outputs, groups));
  auto windows = windowsOver(scope, "convolution", x, kernel, options.strides, options.padding,
                             options.dilations);
  if (!windows)
    return {};
  Shape shape = {outputs, channels / groups}, last = {0};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  for (int64_t d = 2; d < x.rank(); ++d)
    last.push_back(d);
  last.push_back(1);
  Tensor weight = scope.parameter(
      "weight", shape,
      options.weightInit.value_or(Init::fanIn(channels / groups * elementCount(kernel))));
  Tensor bias = options.bias ? scope.parameter("bias", {outputs}, Init::zeros()) : Tensor();
  Tensor taps = transpose(scope, weight, last);
  if (scope.builder().hasFailed())
    return {};
  ir::TensorBuilder b = at(scope);
  const auto list = [&](const Shape& values) { return b.builder.getDenseI64ArrayAttr(values); };
  Tensor y = out(b.create<ConvolutionOp>(
      tensorType(in(x)).clone(resultShape(x, *windows, outputs)), in(x), in(taps),
      list(windows->strides), list(windows->padding), list(windows->padding),
      list(windows->dilations), b.builder.getI64IntegerAttr(groups)));
  return bias ? add(scope, y, bias) : y;
}

Tensor maxPool(const Scope& scope, Tensor x, const Shape& window, const PoolOptions& options) {
  return pool(scope, "maxPool", ReduceKind::Max, x, window, options);
}

Tensor averagePool(const Scope& scope, Tensor x, const Shape& window, const PoolOptions& options) {
  Tensor total = pool(scope, "averagePool", ReduceKind::Sum, x, window, options);
  return total ? scale(scope, total, 1 / static_cast<double>(elementCount(window))) : Tensor();
}

} // namespace titan::nn
