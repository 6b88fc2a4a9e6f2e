#include "compiler/Optimize/Passes.h"

using namespace mlir;

namespace titan {

void addOptimizePasses(OpPassManager& passes) {
  passes.addPass(createInsertUpdate());
  passes.addPass(createAverageParameters());
  passes.addPass(createVerifyOptimize());
}

} // namespace titan
