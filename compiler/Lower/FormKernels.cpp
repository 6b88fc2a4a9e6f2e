// titan-lower-form-kernels: every tensor op becomes kernels, by its own rule.
#include "compiler/Lower/KnownLowerings.h"
#include "compiler/Lower/Passes.h"
#include "compiler/Support/Collectives.h"
#include "compiler/Support/TargetInfo.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_FORMKERNELS
#include "compiler/Lower/Passes.h.inc"

namespace {

struct FormKernels : impl::FormKernelsBase<FormKernels> {
  void runOnOperation() override {
    splitCollectives(getOperation());
    SmallVector<Operation*> ops;
    getOperation().walk([&](Operation* op) {
      if (isa<ir::LowerableOpInterface>(op) ||
          (isa<ir::TitanDialect>(op->getDialect()) && !isa<ir::BarrierOp>(op)))
        ops.push_back(op);
    });
    FailureOr<MachineModel> machine = getMachine(getOperation());
    if (failed(machine))
      return signalPassFailure();
    lower::KnownLowerings known(&getContext(), *machine);
    for (Operation* op : ops) {
      auto lowerable = dyn_cast<ir::LowerableOpInterface>(op);
      if (!lowerable) {
        op->emitOpError("has no lowering rule");
        return signalPassFailure();
      }
      lower::LoweringBuilder lowering = known.builderFor(op);
      if (failed(known.replace(op, lowering, [&] { return lowerable.lower(lowering); })))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace titan
