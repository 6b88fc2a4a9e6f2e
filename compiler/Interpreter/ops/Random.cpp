// Meaning of dropout: decisions by the element's index in the global tensor.
#include "runtime/program/Random.h"
#include "compiler/Interpreter/Models.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::interpreter {

namespace {

LogicalResult dropout(DropoutOp op, Frame& frame) {
  Tensor result = frame.get(op.getOperand());
  double p = op.getP().convertToDouble();
  uint64_t seed = op.getSeed() ? frame.get(op.getSeed()).integer() : 0;
  uint64_t step = op.getStep() ? frame.get(op.getStep()).integer() : 0;
  uint64_t key = randomKey(seed, op.getStream());
  uint32_t threshold = keepThreshold(p);
  double scale = frame.round(1 / (1 - p), result.element());

  // Global index of local element (o, i, r): o over the dimensions before the window's, i along it,
  // r after.
  int64_t inner = result.size(), local = 1, global = 1, offset = 0;
  if (auto window = op.getWindow()) {
    local = result.extent(window->getDim());
    global = window->getGlobal()[window->getDim()];
    inner = result.strides()[window->getDim()];
    if (op.getMicrobatch())
      offset = frame.get(op.getMicrobatch()).integer() * window->getStride();
  }
  MutableArrayRef<double> x = result.mutableFloats();
  for (int64_t i = 0, n = result.size(); i < n; ++i) {
    int64_t r = i % inner, along = i / inner % local, o = i / inner / local;
    uint64_t element = (o * global + along + offset) * inner + r;
    x[i] = dropoutKeeps(key, step, element, threshold) ? x[i] * scale : 0;
  }
  frame.set(op, std::move(result));
  return success();
}

} // namespace

void attachRandom(MLIRContext* context) { attach<DropoutOp, dropout>(context); }

} // namespace titan::interpreter
