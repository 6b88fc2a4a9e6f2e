// Meaning of attention, its gradient and rotary position embedding.
#include "compiler/Interpreter/Attention.h"
#include "compiler/Interpreter/Models.h"
#include "runtime/program/Random.h"

#include <limits>

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

/// Adds a row of the mask to a row of scores: [B or 1, H or 1, T or 1, S], boolean or floating.
class Mask {
public:
  explicit Mask(const Tensor& mask) : mask(mask), strides(mask.strides()) {
    for (auto [extent, stride] : llvm::zip_equal(mask.shape(), strides))
      if (extent == 1)
        stride = 0;
  }
  void operator()(int64_t b, int64_t h, int64_t t, MutableArrayRef<double> scores) const {
    int64_t first = b * strides[0] + h * strides[1] + t * strides[2];
    for (auto [s, x] : llvm::enumerate(scores)) {
      int64_t i = first + static_cast<int64_t>(s) * strides[3];
      if (mask.isFloat())
        x += mask.floats()[i];
      else if (!mask.integers()[i])
        x = -std::numeric_limits<double>::infinity();
    }
  }

private:
  const Tensor& mask;
  SmallVector<int64_t> strides;
};

/// titan.dropout of the tensor [B, H, T, S], a row at a time.
class RowDropout {
public:
  template <typename OpTy>
  RowDropout(OpTy op, const AttentionProblem& p, Frame& frame)
      : global{p.batch, p.heads, p.queries, p.keys} {
    double probability = op.getP().convertToDouble();
    uint64_t seed = op.getSeed() ? frame.get(op.getSeed()).integer() : 0;
    step = op.getStep() ? frame.get(op.getStep()).integer() : 0;
    key = randomKey(seed, op.getStream());
    threshold = keepThreshold(probability);
    scale = frame.round(1 / (1 - probability), op.getLogSumExp().getType().getElementType());
    if (auto window = op.getWindow()) {
      global.assign(window->getGlobal().begin(), window->getGlobal().end());
      if (op.getMicrobatch())
        offset[window->getDim()] = frame.get(op.getMicrobatch()).integer() * window->getStride();
    }
  }
  void operator()(int64_t b, int64_t h, int64_t t, MutableArrayRef<double> row) const {
    int64_t line = ((b + offset[0]) * global[1] + h + offset[1]) * global[2] + t + offset[2];
    uint64_t element = line * global[3] + offset[3];
    for (double& x : row)
      x = dropoutKeeps(key, step, element++, threshold) ? x * scale : 0;
  }

private:
  SmallVector<int64_t, 4> global;
  int64_t offset[4] = {0, 0, 0, 0};
  uint64_t key, step;
  uint32_t threshold;
  double scale;
};

/// Calls `function(problem)` with what `op`, attention or its gradient, says; logSumExp is left to
/// the function.
template <typename OpTy, typename Function>
void withProblem(OpTy op, Frame& frame, Function function) {
  const Tensor &query = frame.get(op.getQuery()), &key = frame.get(op.getKey()),
               &value = frame.get(op.getValue());
  AttentionProblem problem{query.extent(0),
                           query.extent(1),
                           key.extent(1),
                           query.extent(2),
                           key.extent(2),
                           query.extent(3),
                           value.extent(3),
                           op.getScale().convertToDouble(),
                           op.getCausal(),
                           {},
                           {},
                           {},
                           headsOf(query),
                           headsOf(key),
                           headsOf(value),
                           {}};
  std::optional<Mask> mask;
  if (op.getMask())
    problem.mask = mask.emplace(frame.get(op.getMask()));
  std::optional<RowDropout> dropout;
  if (!op.getP().isZero())
    problem.dropout = dropout.emplace(op, problem, frame);
  // Scores, probabilities and sums are the accumulation type's, which the engine holds in f64; only
  // a narrower operand type is a rounding of its own.
  Type element = query.element(),
       wide = cast<ShapedType>(op.getLogSumExp().getType()).getElementType();
  auto round = [&](double x) { return frame.round(x, element); };
  if (element != wide)
    problem.round = round;
  function(problem);
}

LogicalResult attention(AttentionOp op, Frame& frame) {
  Tensor result(cast<ShapedType>(op.getResult().getType()));
  Tensor logSumExp(cast<ShapedType>(op.getLogSumExp().getType()));
  withProblem(op, frame, [&](AttentionProblem& problem) {
    problem.logSumExp = statisticsOf(logSumExp);
    attend(problem, headsOf(result));
  });
  frame.set(op.getResult(), std::move(result));
  frame.set(op.getLogSumExp(), std::move(logSumExp));
  return success();
}

LogicalResult attentionGrad(AttentionGradOp op, Frame& frame) {
  Tensor dquery(cast<ShapedType>(op.getDquery().getType())),
      dkey(cast<ShapedType>(op.getDkey().getType())),
      dvalue(cast<ShapedType>(op.getDvalue().getType()));
  Tensor logSumExp = frame.get(op.getLogSumExp());
  withProblem(op, frame, [&](AttentionProblem& problem) {
    problem.logSumExp = statisticsOf(logSumExp);
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
