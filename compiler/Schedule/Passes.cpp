#include "compiler/Schedule/Passes.h"

using namespace mlir;

namespace titan {

void addSchedulePasses(OpPassManager& passes) {
  // The order of a single rank without recomputation is the one that differentiation made.
  passes.addPass(createVerifySchedule());
}

} // namespace titan
