#include "compiler/Optimize/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace titan {

void addOptimizePasses(OpPassManager& passes) {
  passes.addPass(createInsertUpdate());
  passes.addPass(createAverageParameters());
  // Parameters of one group share their scalars.
  passes.addPass(createCSEPass());
  passes.addPass(createVerifyOptimize());
}

} // namespace titan
