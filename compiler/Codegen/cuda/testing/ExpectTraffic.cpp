#include "compiler/Codegen/cuda/testing/ExpectTraffic.h"

#include "compiler/Codegen/CostModel.h"
#include "compiler/Codegen/cuda/CudaArch.h"
#include "compiler/Codegen/kernel/LoopNest.h"

#include <gtest/gtest.h>

namespace titan::codegen::cuda::testing {

void expectOnce(const ptx::Traffic& traffic, int64_t bytes) {
  EXPECT_EQ(traffic.bytes, bytes);
  EXPECT_LE(traffic.tripSectors, bytes / sectorBytes * 11 / 10 + 2);
}

void expectAsClaimed(const CudaCase& test) {
  const int64_t claimed = costOf(LoopNest(test.kernel()), cardModel()).bytes;
  const auto moved =
      static_cast<double>(test.counters().globalLoads.bytes + test.counters().globalStores.bytes);
  EXPECT_NEAR(moved, static_cast<double>(claimed), static_cast<double>(claimed) / 20);
}

} // namespace titan::codegen::cuda::testing
