// Meaning of the optimizer updates and of the schedule.
#include "compiler/Interpreter/Models.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace titan::ir;

namespace titan::interpreter {

namespace {

LogicalResult schedule(ScheduleOp op, Frame& frame) {
  auto step = static_cast<double>(frame.get(op.getStep()).integer());
  auto warmup = static_cast<double>(frame.get(op.getWarmup()).integer());
  auto steps = static_cast<double>(frame.get(op.getSteps()).integer());
  double lr = frame.get(op.getLr()).real(), ratio = frame.get(op.getMinRatio()).real();
  double t = std::clamp((step - warmup) / std::max(1.0, steps - warmup), 0.0, 1.0);
  double factor = 1;
  if (step < warmup)
    factor = (step + 1) / warmup;
  else if (op.getKind() == ScheduleKind::Cosine)
    factor = ratio + (1 - ratio) * (1 + std::cos(std::numbers::pi * t)) / 2;
  else if (op.getKind() == ScheduleKind::Linear)
    factor = 1 - (1 - ratio) * t;
  else if (op.getKind() == ScheduleKind::Wsd && t > 0.8)
    factor = 1 - (1 - ratio) * (t - 0.8) / 0.2;
  frame.set(op, Tensor::scalar(op.getType().getElementType(), lr * factor));
  return success();
}

/// Where `apply` is false, results are the operands at the same positions.
bool passesThrough(Operation* op, Value apply, ArrayRef<Value> operands, Frame& frame) {
  if (frame.get(apply).integer())
    return false;
  for (auto [operand, result] : llvm::zip_equal(operands, op->getResults()))
    frame.setExact(result, frame.get(operand));
  return true;
}

LogicalResult sgd(SgdOp op, Frame& frame) {
  SmallVector<Value> old = {op.getParam()};
  if (op.getMomentumBuffer())
    old.push_back(op.getMomentumBuffer());
  if (passesThrough(op, op.getApply(), old, frame))
    return success();
  double lr = op.getLrScale().convertToDouble() * frame.get(op.getLr()).real();
  double decay = frame.get(op.getWeightDecay()).real(), scale = frame.get(op.getScale()).real();
  double momentum = op.getMomentum().convertToDouble();
  ArrayRef<double> gradient = frame.get(op.getGradient()).floats();
  Tensor param = frame.get(op.getParam());
  Type element = param.element();
  MutableArrayRef<double> p = param.mutableFloats();
  Tensor buffer;
  MutableArrayRef<double> v;
  if (op.getMomentumBuffer()) {
    buffer = frame.get(op.getMomentumBuffer());
    v = buffer.mutableFloats();
  }
  for (int64_t i = 0, n = param.size(); i < n; ++i) {
    double g = scale * gradient[i] + decay * p[i];
    if (!v.empty()) {
      v[i] = frame.round(momentum * v[i] + g, element);
      g = op.getNesterov() ? g + momentum * v[i] : v[i];
    }
    p[i] -= lr * g;
  }
  frame.set(op.getNewParam(), std::move(param));
  if (op.getMomentumBuffer())
    frame.set(op.getNewMomentumBuffer(), std::move(buffer));
  return success();
}

LogicalResult adam(AdamOp op, Frame& frame) {
  if (passesThrough(op, op.getApply(), {op.getParam(), op.getExpAvg(), op.getExpAvgSq()}, frame))
    return success();
  double lr = op.getLrScale().convertToDouble() * frame.get(op.getLr()).real();
  double decay = frame.get(op.getWeightDecay()).real(), scale = frame.get(op.getScale()).real();
  double beta1 = op.getBeta1().convertToDouble(), beta2 = op.getBeta2().convertToDouble();
  double epsilon = op.getEpsilon().convertToDouble();
  auto count = static_cast<double>(frame.get(op.getT()).integer() + 1);
  double correction1 = 1 - std::pow(beta1, count), correction2 = 1 - std::pow(beta2, count);
  ArrayRef<double> gradient = frame.get(op.getGradient()).floats();
  Tensor param = frame.get(op.getParam()), expAvg = frame.get(op.getExpAvg()),
         expAvgSq = frame.get(op.getExpAvgSq());
  Type element = param.element();
  MutableArrayRef<double> p = param.mutableFloats(), m = expAvg.mutableFloats(),
                          v = expAvgSq.mutableFloats();
  for (int64_t i = 0, n = param.size(); i < n; ++i) {
    double g = scale * gradient[i];
    if (op.getDecoupled())
      p[i] *= 1 - lr * decay;
    else
      g += decay * p[i];
    m[i] = frame.round(m[i] + (1 - beta1) * (g - m[i]), element);
    v[i] = frame.round(beta2 * v[i] + (1 - beta2) * g * g, element);
    p[i] -= lr / correction1 * m[i] / (std::sqrt(v[i]) / std::sqrt(correction2) + epsilon);
  }
  frame.set(op.getNewParam(), std::move(param));
  frame.set(op.getNewExpAvg(), std::move(expAvg));
  frame.set(op.getNewExpAvgSq(), std::move(expAvgSq));
  return success();
}

} // namespace

void attachOptimizer(MLIRContext* context) {
  attach<ScheduleOp, schedule>(context);
  attach<SgdOp, sgd>(context);
  attach<AdamOp, adam>(context);
}

} // namespace titan::interpreter
