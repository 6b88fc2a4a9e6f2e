#include "compiler/Lower/Passes.h"

#include "compiler/Lower/Rules.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_REGISTRATION
#include "compiler/Lower/Passes.h.inc"

void addLowerPasses(OpPassManager& passes) {
  OpPassManager& functions = passes.nest<func::FuncOp>();
  functions.addPass(createNarrowMoves());
  functions.addPass(createFormCones());
  functions.addPass(createFormKernels());
  // Before copies become parts of other kernels.
  functions.addPass(createAbsorbViews());
  functions.addPass(createFuseKernels());
  // After fusion: a bias that went into a larger kernel stays there.
  functions.addPass(createFuseEpilogues());
  functions.addPass(createPadRows());
  functions.addPass(createClassifyKernels());
  // Last of all that changes anything: from here on nothing merges equal kernels.
  functions.addPass(createRemoveBarriers());
  functions.addPass(createVerifyLowered());
}

void registerLowerPasses() { registerLowerStagePasses(); }

void registerLowerInterfaces(DialectRegistry& registry) { lower::registerLowerRules(registry); }

} // namespace titan
