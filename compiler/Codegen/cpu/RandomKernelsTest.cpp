// Random kernels of every shape of loops: against their definition, in calls of a few units, and in
// place.
#include "compiler/Codegen/cpu/testing/KernelCase.h"
#include "compiler/Codegen/kernel/testing/RandomSpec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace titan::codegen::testing {
namespace {

TEST(CpuRandomKernels, MeanWhatTheySay) {
  const char* chosen = std::getenv("TITAN_TEST_SEED");
  const unsigned first = chosen ? static_cast<unsigned>(std::atoi(chosen)) : 1;
  fmt::print("seeds from {} on (TITAN_TEST_SEED)\n", first);
  for (unsigned seed = first; seed < first + 300; ++seed) {
    const RandomSpec drawn = drawKernel(seed);
    SCOPED_TRACE(fmt::format("TITAN_TEST_SEED={}\n{}", seed, moduleText(drawn.spec)));
    KernelCase test(drawn.spec, seed % 3 == 0 ? "x86-64-v3" : "native");
    test.check(drawn.tolerance);
    test.checkInPlace(0, 0);
    if (HasFailure())
      return;
  }
}

} // namespace
} // namespace titan::codegen::testing
