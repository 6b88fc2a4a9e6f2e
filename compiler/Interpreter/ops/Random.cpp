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

  uint64_t base = op.getBase() ? frame.get(op.getBase()).integer() : 0;
  ArrayRef<int64_t> global = op.getWindow() ? op.getWindow()->getGlobal() : result.shape();
  SmallVector<int64_t> strides = result.strides();
  MutableArrayRef<double> x = result.mutableFloats();
  for (int64_t i = 0, n = result.size(); i < n; ++i) {
    uint64_t element = 0; // in the global tensor, from base on
    for (auto [d, stride] : llvm::enumerate(strides))
      element = element * global[d] + i / stride % result.extent(d);
    x[i] = dropoutKeeps(key, step, base + element, threshold) ? x[i] * scale : 0;
  }
  frame.set(op, std::move(result));
  return success();
}

} // namespace

void attachRandom(MLIRContext* context) { attach<DropoutOp, dropout>(context); }

} // namespace titan::interpreter
