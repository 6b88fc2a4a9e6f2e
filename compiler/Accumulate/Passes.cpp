#include "compiler/Accumulate/Passes.h"

using namespace mlir;

namespace titan {

void addAccumulatePasses(OpPassManager& passes) {
  passes.addPass(createFixOrder());
  // Needs the additions that fixing the order made.
  passes.addPass(createFoldContractions());
  passes.addPass(createPlaceRandom());
  passes.addPass(createVerifyAccumulate());
}

} // namespace titan
