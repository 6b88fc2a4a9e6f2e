// What kernels read and write, as the interpreter counts it: named kernels, and extents that no
// schedule was made for.
#include "compiler/Codegen/cuda/testing/ExpectTraffic.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace titan::codegen::cuda::testing {
namespace {

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
    expectAsClaimed(test);
  }
}

TEST(CudaTraffic, NarrowElementsMoveSixteenBytesAtATime) {
  for (int64_t n : {65536, 50257, 1000 * 768, 1000, 769}) {
    CudaCase test({.space = {n},
                   .ins = {{"bf16", "(i) -> (i)", {n}}},
                   .outs = {{"bf16", "(i) -> (i)", {n}}},
                   .kernelClass = "flat",
                   .body = R"(
    ^bb0(%a: bf16):
      %w = arith.extf %a : bf16 to f32
      %s = arith.addf %w, %w : f32
      %r = arith.truncf %s : f32 to bf16
      kernel.yield %r : bf16
)"});
    ASSERT_TRUE(test.ok());
    test.run();
    SCOPED_TRACE(n);
    // Behind the last whole access there are up to seven elements.
    for (const ptx::Traffic& traffic :
         {test.counters().globalLoads, test.counters().globalStores}) {
      expectOnce(traffic, n * 2);
      EXPECT_GE(traffic.byWidth[4] * 32 * 16, n / 8 * 16);
      EXPECT_LE(traffic.requests - traffic.byWidth[4], 7);
    }
    expectAsClaimed(test);
  }
}

/// Softmax of rows: three passes.
KernelSpec softmax(int64_t m, int64_t n, const std::string& element) {
  const bool isNarrow = element == "bf16";
  return {.space = {m, n},
          .ins = {{element, "(r, c) -> (r, c)", {m, n}}},
          .outs = {{element, "(r, c) -> (r, c)", {m, n}}},
          .kernelClass = "row",
          .body = (isNarrow ? "\n^bb0(%x: bf16):\n%v = arith.extf %x : bf16 to f32\n"
                            : std::string("\n^bb0(%v: f32):\n")) +
                  R"(
      %max = kernel.reduce max %v over [1] : f32
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %sum = kernel.reduce add %e over [1] : f32
      %p = arith.divf %e, %sum : f32
)" +
                  (isNarrow ? "%y = arith.truncf %p : f32 to bf16\nkernel.yield %y : bf16\n"
                            : "kernel.yield %p : f32\n")};
}

// Rows of temporaries as titan-lower-pad-rows lays them out. Padding stays what it was.
TEST(CudaTraffic, PaddedRowsMoveSixteenBytesAtATime) {
  for (auto [n, pitch] : {std::pair<int64_t, int64_t>{50257, 50304}, {769, 776}, {1001, 1008}}) {
    const int64_t m = 3;
    KernelSpec spec = softmax(m, n, "bf16");
    spec.ins[0].shape = spec.outs[0].shape = {m, pitch};
    CudaCase test(spec);
    test.check(4.1e-3);
    SCOPED_TRACE(n);
    for (const ptx::Traffic& traffic :
         {test.counters().globalLoads, test.counters().globalStores}) {
      expectOnce(traffic, m * n * 2);
      EXPECT_GE(traffic.byWidth[4] * 32 * 16, m * (n / 8) * 16);
      EXPECT_LE(traffic.requests - traffic.byWidth[4], m * 7);
    }
    expectAsClaimed(test);
  }
}

// Rows whose chunks fill their teams stay in registers from the first pass to the last.
TEST(CudaTraffic, RowsInRegistersAreReadOnce) {
  for (int64_t n : {64, 256, 768, 2048}) {
    const int64_t m = 8;
    CudaCase test(softmax(m, n, "f32"));
    ASSERT_TRUE(test.ok());
    test.run();
    SCOPED_TRACE(n);
    expectOnce(test.counters().globalLoads, m * n * 4);
    expectOnce(test.counters().globalStores, m * n * 4);
    expectAsClaimed(test);
    EXPECT_EQ(test.counters().globalLoads.byWidth[4], test.counters().globalLoads.requests);
    EXPECT_EQ(test.counters().sharedStores.byWidth[4], 0);
  }
}

// Others stay in shared memory.
TEST(CudaTraffic, RowsInSharedMemoryAreReadOnce) {
  for (auto [n, element] : {std::pair(100, "f32"),
                            {769, "f32"},
                            {1000, "bf16"},
                            {3000, "f32"},
                            {8200, "bf16"},
                            {50257, "bf16"}}) {
    const int64_t m = n > 10000 ? 1 : 5, width = element == std::string("f32") ? 4 : 2;
    CudaCase test(softmax(m, n, element));
    test.check(4.1e-3);
    SCOPED_TRACE(fmt::format("{} of {}", n, element));
    expectOnce(test.counters().globalLoads, m * n * width);
    expectOnce(test.counters().globalStores, m * n * width);
    expectAsClaimed(test);
    // A chunk of f32 is two accesses of 16 bytes, which lie 32 bytes apart in a warp.
    if (width == 2)
      EXPECT_EQ(test.counters().sharedLoads.bankConflicts, 0);
  }
}

TEST(CudaTraffic, RowsBeyondSharedMemoryAreReadAgain) {
  const int64_t n = 50257;
  CudaCase test(softmax(1, n, "f32"));
  test.check(1e-6);
  EXPECT_EQ(test.counters().globalLoads.bytes, 3 * n * 4);
}

// Functions are arithmetic on a card too: what is not memory has to stay little beside it.
TEST(CudaInstructions, OfBiasAndGelu) {
  const int64_t m = 64, n = 768;
  for (const char* half : {"%i = arith.mulf %z, %k : f32\n%t = math.erf %i : f32\n",
                           "%i = arith.mulf %z, %k : f32\n%c = arith.mulf %z, %i : f32\n"
                           "%d = arith.mulf %c, %z : f32\n%j = arith.addf %i, %d : f32\n"
                           "%t = math.tanh %j : f32\n"}) {
    CudaCase test({.space = {m, n},
                   .ins = {{"bf16", "(r, c) -> (r, c)", {m, n}}, {"bf16", "(r, c) -> (c)", {n}}},
                   .outs = {{"bf16", "(r, c) -> (r, c)", {m, n}}},
                   .kernelClass = "flat",
                   .body = fmt::format(R"(
    ^bb0(%x: bf16, %b: bf16):
      %one = arith.constant 1.0 : f32
      %k = arith.constant 0.7071 : f32
      %half = arith.constant 0.5 : f32
      %xw = arith.extf %x : bf16 to f32
      %bw = arith.extf %b : bf16 to f32
      %z = arith.addf %xw, %bw : f32
      {}
      %u = arith.addf %t, %one : f32
      %h = arith.mulf %z, %half : f32
      %g = arith.mulf %h, %u : f32
      %r = arith.truncf %g : f32 to bf16
      kernel.yield %r : bf16
)",
                                       half)});
    ASSERT_TRUE(test.ok());
    test.run();
    EXPECT_LE(test.counters().laneInstructions(), 40 * m * n) << half;
  }
}

} // namespace
} // namespace titan::codegen::cuda::testing
