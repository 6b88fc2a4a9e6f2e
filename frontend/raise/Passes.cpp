#include "frontend/raise/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace titan::frontend {

void addImportPasses(OpPassManager& passes) {
  // Exporters repeat constants, and both halves of a variance: equal ops must be one value for the
  // patterns.
  passes.addPass(createCSEPass());
  OpPassManager& functions = passes.nest<func::FuncOp>();
  functions.addPass(createRaiseActivations());
  functions.addPass(createRaiseLayerNorm());
  passes.addPass(createVerifyImport());
}

} // namespace titan::frontend
