// What kernels read and write, as the interpreter counts it: named kernels, and extents that no
// schedule was made for.
#include "compiler/Codegen/cuda/testing/CudaCase.h"

#include <gtest/gtest.h>

namespace titan::codegen::cuda::testing {
namespace {

constexpr int64_t sectorBytes = 32;

/// Every byte once, in no more sectors than it takes, but for a tenth.
void expectOnce(const ptx::Traffic& traffic, int64_t bytes) {
  EXPECT_EQ(traffic.bytes, bytes);
  EXPECT_LE(traffic.tripSectors, bytes / sectorBytes * 11 / 10 + 2);
}

TEST(CudaTraffic, FlatKernelsReadOnce) {
  for (int64_t n : {65536, 50257, 769}) {
    CudaCase test({.space = {n},
                   .ins = {{"f32", "(i) -> (i)", {n}}, {"bf16", "(i) -> (i)", {n}}},
                   .outs = {{"f32", "(i) -> (i)", {n}}},
                   .kernelClass = "flat",
                   .body = R"(
    ^bb0(%a: f32, %b: bf16):
      %w = arith.extf %b : bf16 to f32
      %s = arith.addf %a, %w : f32
      kernel.yield %s : f32
)"});
    ASSERT_TRUE(test.ok());
    test.run();
    SCOPED_TRACE(n);
    expectOnce(test.counters().globalLoads, n * 6);
    expectOnce(test.counters().globalStores, n * 4);
  }
}

// Rows whose chunks fill their teams stay in registers from the first pass to the last.
TEST(CudaTraffic, RowsInRegistersAreReadOnce) {
  for (int64_t n : {64, 256, 768, 2048}) {
    const int64_t m = 8;
    CudaCase test({.space = {m, n},
                   .ins = {{"f32", "(r, c) -> (r, c)", {m, n}}},
                   .outs = {{"f32", "(r, c) -> (r, c)", {m, n}}},
                   .kernelClass = "row",
                   .body = R"(
    ^bb0(%v: f32):
      %max = kernel.reduce max %v over [1] : f32
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %sum = kernel.reduce add %e over [1] : f32
      %p = arith.divf %e, %sum : f32
      kernel.yield %p : f32
)"});
    ASSERT_TRUE(test.ok());
    test.run();
    SCOPED_TRACE(n);
    expectOnce(test.counters().globalLoads, m * n * 4);
    expectOnce(test.counters().globalStores, m * n * 4);
    EXPECT_EQ(test.counters().globalLoads.byWidth[4], test.counters().globalLoads.requests);
  }
}

TEST(CudaTraffic, SumsDownColumnsReadOnce) {
  for (int64_t n : {768, 770}) {
    const int64_t m = 16;
    CudaCase test({.space = {4, m, n},
                   .ins = {{"f32", "(o, r, c) -> (o * 16 + r, c)", {4 * m, n}}},
                   .outs = {{"f32", "(o, r, c) -> (o, c)", {4, n}}},
                   .kernelClass = "column",
                   .body = R"(
    ^bb0(%v: f32):
      %sum = kernel.reduce add %v over [1] : f32
      kernel.yield %sum : f32
)"});
    ASSERT_TRUE(test.ok());
    test.run();
    SCOPED_TRACE(n);
    EXPECT_EQ(test.counters().globalLoads.bytes, 4 * m * n * 4);
    EXPECT_EQ(test.counters().globalStores.bytes, 4 * n * 4);
  }
}

} // namespace
} // namespace titan::codegen::cuda::testing
