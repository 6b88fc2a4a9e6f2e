#include "frontend/raise/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace titan::frontend {

void addRaisePasses(OpPassManager& functions) {
  // Exporters repeat constants, and both halves of a variance: equal ops must be one value for the
  // patterns.
  functions.addPass(createCSEPass());
  // One spelling of what exporters fold, flatten and transpose in different ways, so that the
  // patterns see one.
  functions.addPass(createFoldConstants());
  functions.addPass(createRaiseDropout());
  functions.addPass(createSinkReshapes());
  functions.addPass(createFoldTransposes());
  functions.addPass(createCSEPass());
  functions.addPass(createRaiseActivations());
  // A deviation over its root mean square is an RMSNorm too: LayerNorm comes first.
  functions.addPass(createRaiseLayerNorm());
  functions.addPass(createRaiseRmsNorm());
  functions.addPass(createRaiseRotary());
  functions.addPass(createRaiseSoftmax());
  functions.addPass(createRaiseAttention());
  // Rotary and attention stand between transpositions to their layout and back.
  functions.addPass(createSinkReshapes());
  FoldTransposesOptions everywhere;
  everywhere.sink = true;
  functions.addPass(createFoldTransposes(everywhere));
  functions.addPass(createCSEPass());
}

void addImportPasses(OpPassManager& passes) {
  addRaisePasses(passes.nest<func::FuncOp>());
  passes.addPass(createVerifyImport());
}

} // namespace titan::frontend
