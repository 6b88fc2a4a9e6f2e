// Meaning of the losses.
#include "compiler/Interpreter/Models.h"

#include <cmath>

using namespace mlir;
using namespace titan::ir;

namespace titan::interpreter {

namespace {

/// log(sum of e^x) of a row.
double logSumExp(ArrayRef<double> row) {
  double largest = -INFINITY, sum = 0;
  for (double x : row)
    largest = x > largest || std::isnan(x) ? x : largest;
  for (double x : row)
    sum += std::exp(x - largest);
  return largest + std::log(sum);
}

/// Calls `function(row, target)` for each row whose target is not ignored. An error if a target is
/// no class.
template <typename OpTy, typename Function>
LogicalResult forEachTarget(OpTy op, Frame& frame, Function function) {
  int64_t classes = frame.get(op.getLogits()).shape().back();
  int64_t ignored = op.getIgnoreIndex();
  for (auto [row, target] : llvm::enumerate(frame.get(op.getTargets()).integers())) {
    if (target == ignored)
      continue;
    if (target < 0 || target >= classes)
      return op.emitOpError("target ") << target << " is not one of " << classes << " classes";
    function(static_cast<int64_t>(row), target);
  }
  return success();
}

LogicalResult crossEntropy(CrossEntropyOp op, Frame& frame) {
  const Tensor& logits = frame.get(op.getLogits());
  int64_t classes = logits.shape().back();
  double smoothing = op.getLabelSmoothing().convertToDouble();
  Tensor loss(cast<ShapedType>(op.getType()));
  MutableArrayRef<double> out = loss.mutableFloats();
  if (failed(forEachTarget(op, frame, [&](int64_t row, int64_t target) {
        ArrayRef<double> x = logits.floats().slice(row * classes, classes);
        double logSum = logSumExp(x), all = 0;
        for (double value : x)
          all += logSum - value;
        out[row] = (1 - smoothing) * (logSum - x[target]);
        if (smoothing != 0)
          out[row] += smoothing / classes * all;
      })))
    return failure();
  frame.set(op, std::move(loss));
  return success();
}

LogicalResult crossEntropyGrad(CrossEntropyGradOp op, Frame& frame) {
  const Tensor& logits = frame.get(op.getLogits());
  ArrayRef<double> dloss = frame.get(op.getDloss()).floats();
  int64_t classes = logits.shape().back();
  double smoothing = op.getLabelSmoothing().convertToDouble();
  Tensor result(cast<ShapedType>(op.getType()));
  MutableArrayRef<double> out = result.mutableFloats();
  if (failed(forEachTarget(op, frame, [&](int64_t row, int64_t target) {
        ArrayRef<double> x = logits.floats().slice(row * classes, classes);
        double logSum = logSumExp(x);
        for (int64_t c = 0; c < classes; ++c) {
          double wanted = smoothing / classes + (c == target ? 1 - smoothing : 0);
          out[row * classes + c] = dloss[row] * (std::exp(x[c] - logSum) - wanted);
        }
      })))
    return failure();
  frame.set(op, std::move(result));
  return success();
}

} // namespace

void attachLoss(MLIRContext* context) {
  attach<CrossEntropyOp, crossEntropy>(context);
  attach<CrossEntropyGradOp, crossEntropyGrad>(context);
  attachBinary<BceWithLogitsOp, [](double x, double t) {
    return std::max(x, 0.0) - x * t + std::log1p(std::exp(-std::abs(x)));
  }>(context);
}

} // namespace titan::interpreter
