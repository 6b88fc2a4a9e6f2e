// Meaning of softmax, layer and root-mean-square normalisation.
#include "compiler/Interpreter/Models.h"
#include "compiler/Interpreter/Rows.h"

#include <cmath>

using namespace mlir;
using namespace titan::ir;

namespace titan::interpreter {

namespace {

/// Calls `function(first, step, length)` for each line of `tensor` along `dim`: elements
/// first + i * step.
template <typename Function>
void forEachLine(const Tensor& tensor, int64_t dim, Function function) {
  int64_t step = tensor.strides()[dim], length = tensor.extent(dim);
  int64_t outer = length == 0 ? 0 : tensor.size() / (step * length);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < step; ++i)
      function(o * step * length + i, step, length);
}

/// Largest element and sum of e^(x - largest) of a line.
std::pair<double, double> shiftedSum(ArrayRef<double> x, int64_t first, int64_t step,
                                     int64_t length) {
  double largest = x[first];
  for (int64_t i = 1; i < length; ++i)
    if (x[first + i * step] > largest || std::isnan(x[first + i * step]))
      largest = x[first + i * step];
  double sum = 0;
  for (int64_t i = 0; i < length; ++i)
    sum += std::exp(x[first + i * step] - largest);
  return {largest, sum};
}

LogicalResult softmax(SoftmaxOp op, Frame& frame) {
  Tensor result = frame.get(op.getOperand());
  MutableArrayRef<double> x = result.mutableFloats();
  forEachLine(result, op.getDim(), [&](int64_t first, int64_t step, int64_t length) {
    auto [largest, sum] = shiftedSum(x, first, step, length);
    for (int64_t i = 0; i < length; ++i)
      x[first + i * step] = std::exp(x[first + i * step] - largest) / sum;
  });
  frame.set(op, std::move(result));
  return success();
}

LogicalResult logSoftmax(LogSoftmaxOp op, Frame& frame) {
  Tensor result = frame.get(op.getOperand());
  MutableArrayRef<double> x = result.mutableFloats();
  forEachLine(result, op.getDim(), [&](int64_t first, int64_t step, int64_t length) {
    auto [largest, sum] = shiftedSum(x, first, step, length);
    for (int64_t i = 0; i < length; ++i)
      x[first + i * step] = x[first + i * step] - largest - std::log(sum);
  });
  frame.set(op, std::move(result));
  return success();
}

/// The index of each element of `tensor` in the tensor of its dimensions `dims` alone.
std::vector<int64_t> indicesAlong(const Tensor& tensor, ArrayRef<int64_t> dims) {
  std::vector<int64_t> indices(tensor.size());
  for (int64_t d : dims)
    for (auto [i, index] : llvm::enumerate(indices))
      index = index * tensor.extent(d) +
              static_cast<int64_t>(i) / tensor.strides()[d] % tensor.extent(d);
  return indices;
}

LogicalResult layerNorm(LayerNormOp op, Frame& frame) {
  Tensor result = frame.get(op.getOperand());
  Tensor mean(cast<ShapedType>(op.getMean().getType())), rstd = mean;
  ArrayRef<double> scale, bias;
  if (op.getScale())
    scale = frame.get(op.getScale()).floats();
  if (op.getBias())
    bias = frame.get(op.getBias()).floats();
  const Rows rows(result, op.getDims());
  const double epsilon = op.getEpsilon().convertToDouble();
  for (int64_t row = 0; row < rows.count; ++row) {
    double sum = 0, squares = 0;
    for (double value : rows.floats(row))
      sum += value;
    double average = sum / rows.length;
    for (double value : rows.floats(row))
      squares += (value - average) * (value - average);
    mean.mutableFloats()[row] = average;
    rstd.mutableFloats()[row] = 1 / std::sqrt(squares / rows.length + epsilon);
  }
  const std::vector<int64_t> rowOf = indicesAlong(result, op.getKeptDims()),
                             columnOf = indicesAlong(result, op.getDims());
  for (auto [i, value] : llvm::enumerate(result.mutableFloats())) {
    value = (value - mean.floats()[rowOf[i]]) * rstd.floats()[rowOf[i]];
    if (!scale.empty())
      value *= scale[columnOf[i]];
    if (!bias.empty())
      value += bias[columnOf[i]];
  }
  frame.set(op.getResult(), std::move(result));
  frame.set(op.getMean(), std::move(mean));
  frame.set(op.getRstd(), std::move(rstd));
  return success();
}

LogicalResult rmsNorm(RmsNormOp op, Frame& frame) {
  Tensor result = frame.get(op.getOperand());
  Tensor rstd(cast<ShapedType>(op.getRstd().getType()));
  MutableArrayRef<double> x = result.mutableFloats();
  ArrayRef<double> scale;
  if (op.getScale())
    scale = frame.get(op.getScale()).floats();
  int64_t rows = rstd.size(), length = rows == 0 ? 0 : result.size() / rows;
  double epsilon = op.getEpsilon().convertToDouble();
  for (int64_t row = 0; row < rows; ++row) {
    MutableArrayRef<double> line = x.slice(row * length, length);
    double squares = 0;
    for (double value : line)
      squares += value * value;
    double inverse = 1 / std::sqrt(squares / length + epsilon);
    rstd.mutableFloats()[row] = inverse;
    for (auto [i, value] : llvm::enumerate(line))
      value *= scale.empty() ? inverse : inverse * scale[i];
  }
  frame.set(op.getResult(), std::move(result));
  frame.set(op.getRstd(), std::move(rstd));
  return success();
}

LogicalResult batchNorm(BatchNormOp op, Frame& frame) {
  Rows rows(frame.get(op.getOperand()), op.getReducedDims());
  const Tensor& x = frame.get(op.getOperand());
  ArrayRef<double> scale = frame.get(op.getScale()).floats(),
                   bias = frame.get(op.getBias()).floats();
  Tensor result(cast<ShapedType>(op.getResult().getType())),
      mean(cast<ShapedType>(op.getMean().getType())),
      variance(cast<ShapedType>(op.getVariance().getType()));
  const double count = static_cast<double>(op.getCount());
  const auto channels = static_cast<int64_t>(scale.size());
  for (int64_t channel = 0; channel < channels; ++channel) {
    double sum = 0, squares = 0;
    for (double value : rows.floats(channel))
      sum += value;
    const double middle = sum / count;
    for (double value : rows.floats(channel))
      squares += (value - middle) * (value - middle);
    mean.mutableFloats()[channel] = middle;
    variance.mutableFloats()[channel] = squares / count;
  }
  const int64_t inner = x.strides()[op.getDim()];
  const double epsilon = op.getEpsilon().convertToDouble();
  for (auto [i, y] : llvm::enumerate(result.mutableFloats())) {
    const int64_t channel = static_cast<int64_t>(i) / inner % channels;
    y = (x.floats()[i] - mean.floats()[channel]) / std::sqrt(variance.floats()[channel] + epsilon) *
            scale[channel] +
        bias[channel];
  }
  frame.set(op.getResult(), std::move(result));
  frame.set(op.getMean(), std::move(mean));
  frame.set(op.getVariance(), std::move(variance));
  return success();
}

} // namespace

void attachNormalization(MLIRContext* context) {
  attach<BatchNormOp, batchNorm>(context);
  attach<SoftmaxOp, softmax>(context);
  attach<LogSoftmaxOp, logSoftmax>(context);
  attach<LayerNormOp, layerNorm>(context);
  attach<RmsNormOp, rmsNorm>(context);
}

} // namespace titan::interpreter
