// Meaning of random ops: decisions by the element's index in the global tensor.
#include "runtime/program/Random.h"
#include "compiler/Interpreter/Models.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::interpreter {

namespace {

/// The decisions of a random op, by the element's index in the global tensor.
class Draws {
public:
  Draws(RandomOpInterface op, Frame& frame) {
    uint64_t seed = 0;
    if (op.isSeeded()) {
      seed = frame.get(op.getSeedMutable()[0].get()).integer();
      step = frame.get(op.getStepMutable()[0].get()).integer();
    }
    key = randomKey(seed, op.getStream());
    if (MutableOperandRange base = op.getBaseMutable(); !base.empty())
      base_ = frame.get(base[0].get()).integer();
    drawn_ = op.getDrawnShape();
    global_ = op.isPlaced() ? SmallVector<int64_t>(op.getWindowAttr().getGlobal()) : drawn_;
  }

  /// Of the element of `tensor` at row-major index i: its index in the global tensor.
  uint64_t element(const Tensor& tensor, int64_t i) const {
    uint64_t element = 0; // from base on; where the decisions have extent 1, their index is 0
    for (auto [d, stride] : llvm::enumerate(tensor.strides()))
      element = element * global_[d] + (drawn_[d] == 1 ? 0 : i / stride % tensor.extent(d));
    return base_ + element;
  }

  uint64_t key = 0, step = 0;

private:
  uint64_t base_ = 0;
  SmallVector<int64_t> global_, drawn_;
};

LogicalResult dropout(DropoutOp op, Frame& frame) {
  Tensor result = frame.get(op.getOperand());
  const Draws draws(op, frame);
  double p = op.getP().convertToDouble();
  uint32_t threshold = keepThreshold(p);
  double scale = frame.round(1 / (1 - p), result.element());
  MutableArrayRef<double> x = result.mutableFloats();
  for (int64_t i = 0, n = result.size(); i < n; ++i)
    x[i] =
        dropoutKeeps(draws.key, draws.step, draws.element(result, i), threshold) ? x[i] * scale : 0;
  frame.set(op, std::move(result));
  return success();
}

LogicalResult random(RandomOp op, Frame& frame) {
  Tensor result(op.getType().getShape(), op.getType().getElementType());
  const Draws draws(op, frame);
  MutableArrayRef<double> x = result.mutableFloats();
  for (int64_t i = 0, n = result.size(); i < n; ++i) {
    const uint64_t element = draws.element(result, i);
    x[i] = op.getKind() == RandomKind::Uniform
               ? static_cast<double>(uniformDraw(draws.key, draws.step, element))
               : normalNumber(draws.key, draws.step, element);
  }
  frame.set(op, std::move(result));
  return success();
}

} // namespace

void attachRandom(MLIRContext* context) {
  attach<DropoutOp, dropout>(context);
  attach<RandomOp, random>(context);
}

} // namespace titan::interpreter
