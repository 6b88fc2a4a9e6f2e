#include "compiler/Memory/Passes.h"

#include "dialects/Accum/Accum.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Kernel/Kernel.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_REGISTRATION
#include "compiler/Memory/Passes.h.inc"

void addPlanPasses(OpPassManager& passes) {
  // Correct first: every value in a buffer of its own, but for states and accumulators, which are
  // one buffer by definition.
  passes.addNestedPass<func::FuncOp>(createFormBuffers());
  // Then smaller.
  passes.addNestedPass<func::FuncOp>(createReuseInPlace());
  passes.addPass(createAssignOffsets());
  // A job that cannot fit is refused before anything is generated for it.
  passes.addPass(createCheckLimit());
  passes.addPass(createVerifyPlan());
}

void registerPlanPasses() { registerPlanStagePasses(); }

} // namespace titan
