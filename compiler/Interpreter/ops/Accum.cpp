// Meaning of the microbatch loop: microbatches in order, their terms added one after the other.
#include "compiler/Interpreter/Models.h"

#include "dialects/Accum/Accum.h"

using namespace mlir;

namespace titan::interpreter {

namespace {

Tensor sliceOf(const Tensor& batch, int64_t index) {
  Tensor slice(batch.shape().drop_front(), batch.element());
  Walk from = wholeWalk(batch);
  from.start = index * from.strides[0];
  from.strides.erase(from.strides.begin());
  copyElements(slice.shape(), batch, from, slice, wholeWalk(slice));
  return slice;
}

void addTo(Tensor& sum, const Tensor& term) {
  if (sum.isFloat())
    for (auto [x, y] : llvm::zip_equal(sum.mutableFloats(), term.floats()))
      x += y;
  else
    for (auto [x, y] : llvm::zip_equal(sum.mutableIntegers(), term.integers()))
      x += y;
}

LogicalResult loop(accum::LoopOp op, Frame& frame) {
  if (op.getOrder() == accum::Order::Tree)
    return op.emitOpError("order tree has no meaning here: it is unrolled into nested loops");
  Block& block = op.getBlock();
  bool running = op.getOrder() == accum::Order::Running;
  for (auto [accumulator, init] : llvm::zip_equal(op.getAccumulators(), op.getInits()))
    frame.setExact(accumulator, frame.get(init));
  for (int64_t i = 0; i < static_cast<int64_t>(op.getCount()); ++i) {
    frame.setExact(op.getIndex(), Tensor::scalar(op.getIndex().getType(), i));
    for (auto [slice, batch] : llvm::zip_equal(op.getSlices(), op.getBatches()))
      frame.setExact(slice, sliceOf(frame.get(batch), i));
    if (failed(frame.run(block)))
      return failure();
    SmallVector<Tensor> yielded;
    for (Value value : block.getTerminator()->getOperands())
      yielded.push_back(frame.get(value));
    if (running)
      for (auto [accumulator, value] : llvm::zip_equal(op.getAccumulators(), yielded))
        frame.setExact(accumulator, value);
    for (auto [result, value] : llvm::zip_equal(op.getResults(), yielded)) {
      if (!running && i > 0) {
        Tensor sum = frame.get(result);
        addTo(sum, value);
        frame.set(result, std::move(sum));
      } else {
        frame.setExact(result, value);
      }
    }
  }
  return success();
}

} // namespace

void attachAccum(MLIRContext* context) { attach<accum::LoopOp, loop>(context); }

} // namespace titan::interpreter
