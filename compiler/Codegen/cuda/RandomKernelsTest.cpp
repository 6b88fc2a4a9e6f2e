// Random kernels of every schedule: on the interpreter against their definition, in three orders,
// and in place.
#include "compiler/Codegen/cuda/testing/CudaCase.h"
#include "compiler/Codegen/kernel/testing/RandomSpec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace titan::codegen::cuda::testing {
namespace {

TEST(CudaRandomKernels, MeanWhatTheySay) {
  const char* chosen = std::getenv("TITAN_TEST_SEED");
  const unsigned first = chosen ? static_cast<unsigned>(std::atoi(chosen)) : 1;
  fmt::print("seeds from {} on (TITAN_TEST_SEED)\n", first);
  for (unsigned seed = first; seed < first + 300; ++seed) {
    const codegen::testing::RandomSpec drawn = codegen::testing::drawKernel(seed);
    SCOPED_TRACE(
        fmt::format("TITAN_TEST_SEED={}\n{}", seed, codegen::testing::moduleText(drawn.spec)));
    CudaCase test(drawn.spec);
    ASSERT_TRUE(test.ok());
    test.checkValues(drawn.tolerance);
    test.checkInPlace(0, 0);
    if (seed % 8 == 0)
      expectAssembles(test.ptx());
    if (HasFailure())
      return;
  }
}

} // namespace
} // namespace titan::codegen::cuda::testing
