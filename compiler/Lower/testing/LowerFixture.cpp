#include "compiler/Lower/testing/LowerFixture.h"

#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Lower/Passes.h"
#include "compiler/Support/TargetInfo.h"
#include "mlir/Pass/PassManager.h"

#include <cstdlib>
#include <iostream>

using namespace mlir;

namespace titan::lower::testing {

Lowered Lowered::of(ModuleOp module) {
  Lowered lowered = {module.clone(), module.clone(), nullptr};
  PassManager single(module.getContext()), fused(module.getContext());
  single.nest<func::FuncOp>().addPass(createFormKernels());
  single.nest<func::FuncOp>().addPass(createClassifyKernels());
  addLowerPasses(fused);
  EXPECT_TRUE(succeeded(single.run(*lowered.single)));
  EXPECT_TRUE(succeeded(fused.run(*lowered.fused)));
  lowered.padded = lowered.fused->clone();
  PassManager padded(module.getContext());
  const PadRowsOptions options = {.alignment = 64, .longAlignment = 64, .shortestRow = 1};
  padded.nest<func::FuncOp>().addPass(createPadRows(options));
  padded.nest<func::FuncOp>().addPass(createVerifyLowered());
  EXPECT_TRUE(succeeded(padded.run(*lowered.padded)));
  return lowered;
}

void expectEquivalent(ModuleOp module, int64_t integerBound) {
  const Lowered lowered = Lowered::of(module);
  interpreter::EquivalenceOptions options;
  options.random.integerBound = integerBound;
  options.tolerance = constantsInF32;
  EXPECT_TRUE(succeeded(interpreter::checkEquivalent(module, *lowered.single, options)));
  EXPECT_TRUE(succeeded(interpreter::checkEquivalent(module, *lowered.fused, options)));
  options.engine = interpreter::Engine::F32;
  options.tolerance = 0;
  EXPECT_TRUE(succeeded(interpreter::checkEquivalent(*lowered.single, *lowered.fused, options)));
  EXPECT_TRUE(succeeded(interpreter::checkEquivalent(*lowered.single, *lowered.padded, options)));
}

void setMachine(ModuleOp module, int64_t MachineModel::* member, int64_t value) {
  TargetInfo target;
  target.cpu = "x86-64-v3";
  target.machine = MachineModel();
  *target.machine.*member = value;
  setTarget(module, target);
}

Lower::Lower() : ModuleFixture(registerLowerInterfaces) {}

void Lower::forEachSeed(unsigned count, const std::function<void(unsigned, std::mt19937&)>& check) {
  const char* chosen = std::getenv("TITAN_TEST_SEED");
  const unsigned first = chosen ? static_cast<unsigned>(std::atoi(chosen)) : 1;
  std::cout << "seeds from " << first << " on (TITAN_TEST_SEED)\n";
  for (unsigned seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("TITAN_TEST_SEED=" + std::to_string(seed));
    std::mt19937 generator(seed);
    check(seed, generator);
  }
}

} // namespace titan::lower::testing
