// Meaning of attention, its gradient and rotary position embedding.
#include "compiler/Interpreter/Attention.h"
#include "compiler/Interpreter/Models.h"
#include "runtime/program/Random.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::interpreter {

namespace {

/// A contiguous [batch, position, head, width] tensor.
template <typename T> Heads<T> headsOf(ArrayRef<int64_t> shape, T* data) {
  return {data, shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3]};
}
Heads<const double> headsOf(const Tensor& tensor) {
  return headsOf(tensor.shape(), tensor.floats().data());
}
Heads<double> headsOf(Tensor& tensor) {
  return headsOf(tensor.shape(), tensor.mutableFloats().data());
}
/// A contiguous [batch, head, position] tensor of row statistics.
Heads<double> statisticsOf(Tensor& tensor) {
  int64_t heads = tensor.extent(1), positions = tensor.extent(2);
  return {tensor.mutableFloats().data(), heads * positions, 1, positions};
}

/// [B or 1, H or 1, T or 1, S].
MaskRows maskOf(const Tensor& mask, FloatAttr fill) {
  SmallVector<int64_t> strides = mask.strides();
  for (auto [extent, stride] : llvm::zip_equal(mask.shape(), strides))
    if (extent == 1)
      stride = 0;
  MaskRows rows{mask, strides[0], strides[1], strides[2]};
  if (fill)
    rows.fill = fill.getValueAsDouble();
  return rows;
}

template <typename OpTy>
DropoutRows dropoutOf(OpTy op, const AttentionProblem& problem, Frame& frame) {
  double p = op.getP().convertToDouble();
  uint64_t seed = op.getSeed() ? frame.get(op.getSeed()).integer() : 0;
  DropoutRows rows;
  rows.key = randomKey(seed, op.getStream());
  rows.step = op.getStep() ? frame.get(op.getStep()).integer() : 0;
  rows.threshold = keepThreshold(p);
  rows.scale = frame.round(1 / (1 - p), getElementTypeOrSelf(op.getLogSumExp().getType()));
  rows.global = {problem.batch, problem.heads, problem.queries, problem.keys};
  if (auto window = op.getWindow()) {
    llvm::copy(window->getGlobal(), rows.global.begin());
    if (op.getBase())
      rows.base = frame.get(op.getBase()).integer();
  }
  return rows;
}

/// Calls `function(problem)` with what `op`, attention or its gradient, says; statistics are
/// left to the function.
template <typename OpTy, typename Function>
void withProblem(OpTy op, Frame& frame, Function function) {
  const Tensor &query = frame.get(op.getQuery()), &key = frame.get(op.getKey()),
               &value = frame.get(op.getValue());
  AttentionProblem problem;
  problem.batch = query.extent(0);
  problem.queries = query.extent(1);
  problem.keys = key.extent(1);
  problem.heads = query.extent(2);
  problem.keyHeads = key.extent(2);
  problem.width = query.extent(3);
  problem.valueWidth = value.extent(3);
  problem.scale = op.getScale().convertToDouble();
  problem.causal = op.getCausal();
  problem.query = headsOf(query);
  problem.key = headsOf(key);
  problem.value = headsOf(value);
  std::optional<MaskRows> mask;
  std::optional<FilledRows> filled;
  if (op.getMask())
    problem.mask = mask.emplace(maskOf(frame.get(op.getMask()), op.getFillAttr()));
  if (op.getFill())
    problem.filled = filled.emplace(*mask);
  std::optional<DropoutRows> dropout;
  if (!op.getP().isZero())
    problem.dropout = dropout.emplace(dropoutOf(op, problem, frame));
  // Scores, probabilities and sums are the accumulation type's, which the engine holds in f64; only
  // a narrower operand type is a rounding of its own, and a mask of numbers, which may be so low
  // that the score is lost.
  Type element = query.element(), wide = getElementTypeOrSelf(op.getLogSumExp().getType());
  auto round = [&](double x) { return frame.round(x, element); };
  if (element != wide)
    problem.round = round;
  auto roundScore = [&](double x) { return frame.round(x, wide); };
  if (op.getLargest())
    problem.roundScore = roundScore;
  function(problem);
}

LogicalResult attention(AttentionOp op, Frame& frame) {
  Tensor result(cast<ShapedType>(op.getResult().getType()));
  Tensor logSumExp(cast<ShapedType>(op.getLogSumExp().getType()));
  std::optional<Tensor> largest;
  if (op.getLargest())
    largest.emplace(cast<ShapedType>(op.getLargest().getType()));
  withProblem(op, frame, [&](AttentionProblem& problem) {
    problem.logSumExp = statisticsOf(logSumExp);
    if (largest)
      problem.largest = statisticsOf(*largest);
    attend(problem, headsOf(result));
  });
  if (largest)
    frame.set(op.getLargest(), std::move(*largest));
  frame.set(op.getResult(), std::move(result));
  frame.set(op.getLogSumExp(), std::move(logSumExp));
  return success();
}

LogicalResult attentionGrad(AttentionGradOp op, Frame& frame) {
  Tensor dquery(cast<ShapedType>(op.getDquery().getType())),
      dkey(cast<ShapedType>(op.getDkey().getType())),
      dvalue(cast<ShapedType>(op.getDvalue().getType()));
  Tensor logSumExp = frame.get(op.getLogSumExp());
  std::optional<Tensor> largest;
  if (op.getLargest())
    largest.emplace(frame.get(op.getLargest()));
  withProblem(op, frame, [&](AttentionProblem& problem) {
    problem.logSumExp = statisticsOf(logSumExp);
    if (largest)
      problem.largest = statisticsOf(*largest);
    attendBackward(problem, headsOf(frame.get(op.getResult())), headsOf(frame.get(op.getDresult())),
                   headsOf(dquery), headsOf(dkey), headsOf(dvalue));
  });
  frame.set(op.getDquery(), std::move(dquery));
  frame.set(op.getDkey(), std::move(dkey));
  frame.set(op.getDvalue(), std::move(dvalue));
  return success();
}

LogicalResult rotary(RotaryOp op, Frame& frame) {
  Tensor result = frame.get(op.getOperand());
  const Tensor &cosines = frame.get(op.getCos()), &sines = frame.get(op.getSin());
  Type element = cosines.element();
  auto round = [&](double x) { return frame.round(x, element); };
  int64_t positions = result.extent(1), heads = result.extent(2), width = result.extent(3);
  int64_t pairs = cosines.shape().back();
  bool batched = cosines.rank() == 3 && cosines.extent(0) > 1;
  MutableArrayRef<double> x = result.mutableFloats();
  for (int64_t row = 0, rows = result.size() / width; row < rows; ++row) {
    // Rows of the angles: one a position, of the row's batch or of all.
    int64_t position = row / heads % positions, b = row / heads / positions;
    int64_t angles = ((batched ? b * positions : 0) + position) * pairs;
    for (int64_t i = 0; i < pairs; ++i) {
      double& first = x[row * width + (op.getInterleaved() ? 2 * i : i)];
      double& second = x[row * width + (op.getInterleaved() ? 2 * i + 1 : i + pairs)];
      double cosine = cosines.floats()[angles + i], sine = sines.floats()[angles + i];
      double a = first, c = second;
      first = round(round(a * cosine) - round(c * sine));
      second = round(round(c * cosine) + round(a * sine));
    }
  }
  frame.set(op, std::move(result));
  return success();
}

} // namespace

void attachAttention(MLIRContext* context) {
  attach<AttentionOp, attention>(context);
  attach<AttentionGradOp, attentionGrad>(context);
  attach<RotaryOp, rotary>(context);
}

} // namespace titan::interpreter
