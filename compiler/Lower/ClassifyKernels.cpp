// titan-lower-classify-kernels.
#include "compiler/Lower/Classify.h"
#include "compiler/Lower/Passes.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_CLASSIFYKERNELS
#include "compiler/Lower/Passes.h.inc"

namespace {

struct ClassifyKernels : impl::ClassifyKernelsBase<ClassifyKernels> {
  void runOnOperation() override {
    auto result = getOperation().walk([](kernel::FusedOp op) -> WalkResult {
      std::string why;
      FailureOr<lower::Loops> loops = lower::classify(op, &why);
      if (failed(loops))
        return op.emitOpError("fits no class of kernels: ") << why;
      op.setKernelClass(loops->kernelClass);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
} // namespace titan
