// titan-lower-remove-barriers.
#include "compiler/Lower/Passes.h"
#include "dialects/Kernel/Kernel.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_REMOVEBARRIERS
#include "compiler/Lower/Passes.h.inc"

namespace {

struct RemoveBarriers : impl::RemoveBarriersBase<RemoveBarriers> {
  void runOnOperation() override {
    getOperation().walk([](ir::BarrierOp barrier) {
      barrier.replaceAllUsesWith(barrier.getInputs());
      barrier.erase();
    });
  }
};

} // namespace
} // namespace titan
