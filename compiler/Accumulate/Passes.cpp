#include "compiler/Accumulate/Passes.h"

using namespace mlir;

namespace titan {

void addAccumulatePasses(OpPassManager& passes) {
  passes.addPass(createMoveTransposes());
  passes.addPass(createFixOrder());
  passes.addPass(createPlaceRandom());
  passes.addPass(createVerifyAccumulate());
}

} // namespace titan
