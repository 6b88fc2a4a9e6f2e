#include "compiler/Support/LoopChain.h"

#include "runtime/program/Affine.h"

using namespace mlir;

namespace titan {

int64_t iterationsOf(accum::LoopOp loop) {
  int64_t iterations = 1;
  for (; loop; loop = loop.getOuter())
    iterations *= static_cast<int64_t>(loop.getCount());
  return iterations;
}

/// The loops of `step` from the outermost on, or an error.
static FailureOr<SmallVector<accum::LoopOp>> chainOf(func::FuncOp step) {
  SmallVector<accum::LoopOp> chain;
  bool isChain = true;
  step.walk<WalkOrder::PreOrder>([&](accum::LoopOp loop) {
    if (loop.getOuter() != (chain.empty() ? accum::LoopOp() : chain.back()) && isChain) {
      loop.emitError("stands beside another accum.loop: put one into the other");
      isChain = false;
    }
    chain.push_back(loop);
  });
  if (!isChain)
    return failure();
  return chain;
}

LogicalResult verifyLoopChain(func::FuncOp step, int64_t microbatches, bool mayBeInlined) {
  FailureOr<SmallVector<accum::LoopOp>> chain = chainOf(step);
  if (failed(chain))
    return failure();
  if (chain->empty())
    return mayBeInlined && microbatches == 1
               ? success()
               : step.emitError("has no accum.loop for ") << microbatches << " microbatches";
  if (chain->size() > maxRepeatDepth)
    return chain->back().emitError("stands inside of ")
           << chain->size() - 1 << " others: at most " << int{maxRepeatDepth} << " loops nest";
  int64_t iterations = iterationsOf(chain->back());
  if (iterations == microbatches)
    return success();
  InFlightDiagnostic error = chain->front().emitError("runs ");
  if (chain->size() > 1) {
    llvm::interleave(
        *chain, [&](accum::LoopOp loop) { error << loop.getCount(); }, [&] { error << " x "; });
    error << " = ";
  }
  return error << iterations << " microbatches, the recipe says " << microbatches;
}

} // namespace titan
