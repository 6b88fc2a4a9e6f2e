#include "compiler/Autodiff/Passes.h"

#include "mlir/Transforms/Passes.h"

namespace titan {

void addDifferentiatePasses(mlir::OpPassManager& passes) {
  passes.addPass(createFreezeParameters());
  passes.addPass(createInsertLoss());
  passes.addPass(createBuildGradients());
  // Before anything shares the pads: a piece that is used twice stays one.
  passes.addPass(createCombinePieces());
  // Rules build constants, and forward values again where they need them: fold, then share.
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(createCombineDuplicates());
  // What lost its last use to the sharing goes.
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(createDecidePrecision());
  passes.addPass(createVerifyDifferentiate());
}

} // namespace titan
