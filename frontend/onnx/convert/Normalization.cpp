// Softmax and its kin, layer and root-mean-square normalisation.
#include "dialects/Titan/BatchNorm.h"
#include "frontend/Decimal.h"
#include "frontend/onnx/convert/Conversion.h"
#include "frontend/onnx/name/Scopes.h"

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

/// From opset 13 on along one axis; before, over all dimensions from `axis` on, flattened.
template <typename Op> Status softmaxLike(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  int64_t rank = c.rankOf(x);
  if (rank == 0)
    return c.error("operand is a scalar");
  auto along = [&](Value value, int64_t dim) -> Value {
    return c.create<Op>(value, c.builder.getI64IntegerAttr(dim));
  };
  if (c.node.opset >= 13)
    return c.give(along(x, TITAN_TRY(c.axis(-1, rank))));
  int64_t axis = TITAN_TRY(c.axis(1, rank));
  if (axis == rank - 1)
    return c.give(along(x, axis));
  Shape shape = c.shapeOf(x);
  int64_t row = elementCount(std::span(shape).subspan(axis));
  Shape flat(shape.begin(), shape.begin() + axis);
  flat.push_back(row);
  return c.give(c.reshape(along(c.reshape(x, flat), axis), shape));
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

/// With fixed statistics, as PyTorch's eval(), or with those of the batch, as train(). Outputs 1
/// and 2 of the latter are the running statistics as one step leaves them.
Status batchNormalization(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  if (c.rankOf(x) < 2)
    return c.error("operand of shape {} has no channels", toString(c.shapeOf(x)));
  if (c.node.opset < 9 && c.node.integer("spatial", 1) == 0)
    return c.error("spatial = 0 is not supported");
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
  // Up to opset 13 its other outputs say so.
  if (node.opset < 14 && node.outputs.size() > 1 && !node.outputs[1].empty())
    return true;
  return scopeOf(node).usesBatchStatistics;
}

ArrayRef<ConverterEntry> normalizationConverters() {
  static const ConverterEntry table[] = {
      {"BatchNormalization", 1, batchNormalization, "without its saved statistics"},
      {"LayerNormalization", 17, layerNormalization, ""},
      {"LogSoftmax", 1, softmaxLike<LogSoftmaxOp>, ""},
      {"RMSNormalization", 23, rmsNormalization, ""},
      {"Softmax", 1, softmaxLike<SoftmaxOp>, ""},
  };
  return table;
}

} // namespace titan::frontend
