// Softmax and its kin; norms of layers, groups, instances and batches, and by root mean squares.
#include "dialects/Titan/BatchNorm.h"
#include "frontend/Decimal.h"
#include "frontend/onnx/convert/Conversion.h"
#include "frontend/onnx/name/Scopes.h"
#include "frontend/onnx/name/SourceModel.h"

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

/// From opset 13 on along one axis; before, over all dimensions from `axis` on, flattened.
template <Value build(Conversion&, Value, int64_t dim)> Status alongRows(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  int64_t rank = c.rankOf(x);
  if (rank == 0)
    return c.error("operand is a scalar");
  if (c.node.opset >= 13)
    return c.give(build(c, x, TITAN_TRY(c.axis(-1, rank))));
  int64_t axis = TITAN_TRY(c.axis(1, rank));
  if (axis == rank - 1)
    return c.give(build(c, x, axis));
  Shape shape = c.shapeOf(x);
  int64_t row = elementCount(std::span(shape).subspan(axis));
  Shape flat(shape.begin(), shape.begin() + axis);
  flat.push_back(row);
  return c.give(c.reshape(build(c, c.reshape(x, flat), axis), shape));
}

template <typename Op> Value softmaxLike(Conversion& c, Value x, int64_t dim) {
  return c.create<Op>(x, c.builder.getI64IntegerAttr(dim));
}

/// 1 at the first maximum, 0 elsewhere.
Value hardmax(Conversion& c, Value x, int64_t dim) {
  Value place = c.create<ArgmaxOp>(x, dim);
  return c.convert(c.isIndex(place, dim, c.shapeOf(x)[dim]), tensorType(x).getElementType());
}

Status layerNormalization(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  int64_t axis = TITAN_TRY(c.axis(-1, c.rankOf(x)));
  Shape shape = c.shapeOf(x);
  ArrayRef<int64_t> normalized = ArrayRef<int64_t>(shape).drop_front(axis);
  auto affine = [&](size_t i) -> Result<Value> {
    if (!c.has(i))
      return Value();
    Value value = TITAN_TRY(c.floatOperand(i));
    if (tensorType(value).getElementType() != tensorType(x).getElementType())
      return c.error("scale and bias must have the operand's type");
    if (c.rankOf(value) > static_cast<int64_t>(normalized.size()) ||
        broadcastShape(c.shapeOf(value), normalized) != Shape(normalized))
      return c.error("{} does not broadcast to the normalised dimensions {}",
                     toString(c.shapeOf(value)), toString(normalized));
    return c.broadcastTo(value, normalized);
  };
  Value scale = TITAN_TRY(affine(1)), bias = TITAN_TRY(affine(2));
  auto norm = c.create<LayerNormOp>(x, scale, bias, llvm::to_vector(llvm::seq(axis, c.rankOf(x))),
                                    c.node.real("epsilon", 1e-5));
  c.results[0] = norm.getResult();
  // Mean and inverse deviation keep the normalised dimensions as 1.
  Shape kept = shape;
  std::fill(kept.begin() + axis, kept.end(), 1);
  if (c.wants(1))
    c.results[1] = c.reshape(norm.getMean(), kept);
  if (c.wants(2))
    c.results[2] = c.reshape(norm.getRstd(), kept);
  return {};
}

Status rmsNormalization(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0)), scale = TITAN_TRY(c.floatOperand(1));
  int64_t axis = TITAN_TRY(c.axis(-1, c.rankOf(x)));
  Shape shape = c.shapeOf(x), own = c.shapeOf(scale);
  ArrayRef<int64_t> normalized = ArrayRef<int64_t>(shape).drop_front(axis);
  if (broadcastShape(own, shape) != shape ||
      tensorType(scale).getElementType() != tensorType(x).getElementType())
    return c.error("a scale of {} does not broadcast to {}", toString(own), toString(shape));
  // A scale that varies over what is not normalised multiplies afterwards.
  bool inside = own.size() <= normalized.size();
  auto norm = c.create<RmsNormOp>(x, inside ? c.broadcastTo(scale, normalized) : Value(), axis,
                                  c.node.real("epsilon", 1e-5));
  Value result = norm.getResult();
  return c.give(inside ? result : c.mul(result, c.broadcastTo(scale, shape)));
}

/// The value of a constant all of whose elements are `number`.
bool isSplat(Value value, double number) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  return splat && splat.getSplatValue<APFloat>().isExactlyValue(number);
}

/// y * scale + bias, of which each has one element for each index of dimension `dim` of `y`. Ones
/// and zeros are what an exporter writes for a norm without them.
Value scaledAndShifted(Conversion& c, Value y, int64_t dim, Value scale, Value bias) {
  if (!isSplat(scale, 1))
    y = c.mul(y, c.broadcast(scale, c.shapeOf(y), dim));
  return isSplat(bias, 0) ? y : c.add(y, c.broadcast(bias, c.shapeOf(y), dim));
}

/// `x` [N, C, space...] with the channels in groups, and its norm over each of them and space. The
/// result is [N, groups, C of a group, space...]; where a group is one channel, or all are one, `x`
/// is not reshaped.
Result<Value> normOfGroups(Conversion& c, Value x, int64_t groups) {
  const Shape shape = c.shapeOf(x);
  if (shape.size() < 2)
    return c.error("operand of shape {} has no channels", toString(shape));
  if (groups < 1 || shape[1] % groups != 0)
    return c.error("{} channels in {} groups", shape[1], groups);
  const int64_t count = shape[1] / groups * elementCount(std::span(shape).subspan(2));
  if (count < 2)
    return c.error("an operand of shape {} in {} groups has {} element for each, of which there is "
                   "no statistic",
                   toString(shape), groups, count);
  Shape split = shape;
  if (groups != 1 && groups != shape[1]) {
    split[1] = groups;
    split.insert(split.begin() + 2, shape[1] / groups);
  }
  const int64_t first = groups == 1 ? 1 : 2;
  auto dims = llvm::to_vector(llvm::seq(first, static_cast<int64_t>(split.size())));
  return c
      .create<LayerNormOp>(c.reshaped(x, split), Value(), Value(), dims,
                           c.node.real("epsilon", 1e-5))
      .getResult();
}

/// Operands 1 and 2, vectors of `extent` elements of the type of `x`.
Result<std::pair<Value, Value>> scaleAndBias(Conversion& c, Value x, int64_t extent) {
  Value of[2];
  for (size_t i = 0; i < 2; ++i) {
    of[i] = TITAN_TRY(c.floatOperand(i + 1));
    if (c.shapeOf(of[i]) != Shape{extent})
      return c.error("operand {} of shape {}, where {} elements are", i + 1,
                     toString(c.shapeOf(of[i])), extent);
    if (tensorType(of[i]).getElementType() != tensorType(x).getElementType())
      return c.error("scale and bias must have the operand's type");
  }
  return std::pair(of[0], of[1]);
}

/// Scale and bias have one element a group up to opset 20, one a channel from then on.
Status groupNormalization(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  const int64_t groups = c.node.integer("num_groups", 0);
  Value norm = TITAN_TRY(normOfGroups(c, x, groups));
  const Shape shape = c.shapeOf(x);
  const bool isByGroup = c.node.opset < 21;
  auto [scale, bias] = TITAN_TRY(scaleAndBias(c, x, isByGroup ? groups : shape[1]));
  if (isByGroup) {
    const Shape split{groups, shape[1] / groups};
    for (Value* vector : {&scale, &bias})
      *vector = c.reshaped(c.broadcast(*vector, split, 0), Shape{shape[1]});
  }
  return c.give(scaledAndShifted(c, c.reshaped(norm, shape), 1, scale, bias));
}

/// Each channel of each sample. PyTorch's exporters write a norm of groups so, over a view
/// [N, groups, rest] of [N, C, space...]: that is undone.
Status instanceNormalization(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  const Shape shape = c.shapeOf(x);
  if (shape.size() < 3)
    return c.error("operand of shape {} has no space dimensions", toString(shape));
  auto [scale, bias] = TITAN_TRY(scaleAndBias(c, x, shape[1]));
  Value source = x;
  if (auto view = x.getDefiningOp<ReshapeOp>()) {
    const Shape whole = c.shapeOf(view.getOperand());
    if (whole.size() >= 2 && whole[0] == shape[0] && whole[1] % shape[1] == 0)
      source = view.getOperand();
  }
  Value norm = TITAN_TRY(normOfGroups(c, source, shape[1]));
  if (isSplat(scale, 1) && isSplat(bias, 0))
    return c.give(c.reshaped(norm, shape));
  return c.give(scaledAndShifted(c, c.reshaped(norm, shape), 1, scale, bias));
}

/// (x - mean) / (deviation + 1e-9); the small number is below the root here.
Status meanVarianceNormalization(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  auto axes = c.node.integers("axes").value_or(std::vector<int64_t>{0, 2, 3});
  std::vector<int64_t> dims = TITAN_TRY(normalizeAxes(c.node, axes, c.rankOf(x)));
  if (dims.empty())
    return c.error("axes are empty");
  return c.give(c.create<LayerNormOp>(x, Value(), Value(), dims, 1e-18).getResult());
}

/// Is `x` a view [1, N C, space...] of [N, C, space...], over which each sample has statistics of
/// its own?
bool isOfInstances(Conversion& c, Value x) {
  auto view = x.getDefiningOp<ReshapeOp>();
  if (!view || c.shapeOf(x)[0] != 1)
    return false;
  const Shape shape = c.shapeOf(x), whole = c.shapeOf(view.getOperand());
  return whole.size() == shape.size() && whole[0] * whole[1] == shape[1] &&
         std::equal(shape.begin() + 2, shape.end(), whole.begin() + 2);
}

/// With fixed statistics, as PyTorch's eval(), or with those of the batch, as train(). Outputs 1
/// and 2 of the latter are the running statistics as one step leaves them.
Status batchNormalization(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  if (c.rankOf(x) < 2)
    return c.error("operand of shape {} has no channels", toString(c.shapeOf(x)));
  if (c.node.opset < 9 && c.node.integer("spatial", 1) == 0)
    return c.error("spatial = 0 is not supported");
  if (isOfInstances(c, x) || scopeOf(c.node).target.starts_with("aten.instance_norm."))
    return c.error("a norm of instances with running statistics (track_running_stats) is not "
                   "supported");
  const Shape shape = c.shapeOf(x);
  const int64_t channels = shape[1];
  Value of[4];
  for (size_t i = 0; i < 4; ++i) {
    of[i] = TITAN_TRY(c.floatOperand(i + 1));
    if (c.shapeOf(of[i]) != Shape{channels})
      return c.error("operand {} of shape {} for {} channels", i + 1, toString(c.shapeOf(of[i])),
                     channels);
  }
  auto [scale, bias, mean, variance] = of;
  const double epsilon = c.node.real("epsilon", 1e-5);
  if (!c.trainingMode && !usesBatchStatistics(c.node)) {
    if (c.wants(1) || c.wants(2))
      return c.error("its running statistics are read, which it does not change");
    return c.give(buildFixedBatchNorm(c, x,
                                      {.scale = scale,
                                       .bias = bias,
                                       .mean = mean,
                                       .variance = variance,
                                       .epsilon = epsilon,
                                       .dim = 1}));
  }
  const int64_t count = elementCount(shape) / std::max<int64_t>(channels, 1);
  if (count < 2)
    return c.error("an operand of shape {} has {} element for each channel, of which there is no "
                   "statistic",
                   toString(shape), count);
  if (c.wants(3) || c.wants(4))
    return c.error("its saved statistics are read, which is not supported");
  // ONNX counts what stays, PyTorch what comes.
  const double momentum = asWritten(static_cast<float>(1 - c.node.real("momentum", 0.9)));
  auto statistic =
      RankedTensorType::get(channels, accumulationType(tensorType(x).getElementType()));
  auto norm = c.create<BatchNormOp>(
      TypeRange{x.getType(), statistic, statistic}, x, scale, bias, ValueRange{mean, variance},
      c.has(kBatchCounter) ? TITAN_TRY(c.operand(kBatchCounter)) : Value(),
      c.builder.getI64IntegerAttr(1), c.builder.getF64FloatAttr(epsilon),
      c.builder.getF64FloatAttr(momentum), c.fromPyTorch ? c.builder.getUnitAttr() : UnitAttr());
  c.results[0] = norm.getResult();
  const auto moved = [&](Value before, Value sample) {
    Value after = c.add(c.scale(c.convert(before, statistic.getElementType()), 1 - momentum),
                        c.scale(sample, momentum));
    return c.convert(after, tensorType(before).getElementType());
  };
  const auto n = static_cast<double>(count);
  if (c.wants(1))
    c.results[1] = moved(mean, norm.getMean());
  if (c.wants(2))
    c.results[2] = moved(variance, c.fromPyTorch ? c.scale(norm.getVariance(), n / (n - 1))
                                                 : norm.getVariance());
  return {};
}

} // namespace

bool usesBatchStatistics(const Node& node) {
  if (node.integer("training_mode", 0) != 0)
    return true;
  // Up to opset 13 its other outputs say so, which nobody reads: they have lost their names.
  if (node.opset < 14 && node.outputs.size() > 1)
    return true;
  return scopeOf(node).usesBatchStatistics;
}

ArrayRef<ConverterEntry> normalizationConverters() {
  static const ConverterEntry table[] = {
      {"BatchNormalization", 1, batchNormalization, "without its saved statistics"},
      {"GroupNormalization", 18, groupNormalization, ""},
      {"Hardmax", 1, alongRows<hardmax>, ""},
      {"InstanceNormalization", 1, instanceNormalization, ""},
      {"LayerNormalization", 17, layerNormalization, ""},
      {"LogSoftmax", 1, alongRows<softmaxLike<LogSoftmaxOp>>, ""},
      {"MeanVarianceNormalization", 9, meanVarianceNormalization, ""},
      {"RMSNormalization", 23, rmsNormalization, ""},
      {"Softmax", 1, alongRows<softmaxLike<SoftmaxOp>>, ""},
  };
  return table;
}

} // namespace titan::frontend
