// Transposing kernels: their values whatever the extents, types and operands beside the transposed
// ones, and what they read and write.
#include "compiler/Codegen/cuda/testing/CudaCase.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace titan::codegen::cuda::testing {
namespace {

/// out[b, r, c] = in[b, c, r]
KernelSpec transpose(int64_t b, int64_t m, int64_t n, const std::string& element) {
  return {.space = {b, m, n},
          .ins = {{element, "(b, r, c) -> (b, c, r)", {b, n, m}}},
          .outs = {{element, "(b, r, c) -> (b, r, c)", {b, m, n}}},
          .kernelClass = "transpose",
          .body = "\n^bb0(%x: " + element + "):\nkernel.yield %x : " + element + "\n"};
}

TEST(CudaTileKernel, AnyExtents) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{64, 64},
                      {65, 100},
                      {8, 128},
                      {128, 8},
                      {9, 300},
                      {1001, 17},
                      {32, 32},
                      {200, 769}})
    CudaCase(transpose(3, m, n, "f32")).check(0);
}

TEST(CudaTileKernel, AnyType) {
  for (const char* element : {"bf16", "f64", "i1", "i8", "i32", "i64"})
    CudaCase(transpose(2, 75, 130, element)).check(0);
}

// Outs in both orders, ins in both, of which one lacks the batch, and vectors along either side.
TEST(CudaTileKernel, OperandsOfEitherOrder) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{64, 128}, {75, 130}, {40, 33}}) {
    CudaCase test({.space = {2, m, n},
                   .ins = {{"f32", "(b, r, c) -> (b, c, r)", {2, n, m}},
                           {"bf16", "(b, r, c) -> (c, r)", {n, m}},
                           {"f32", "(b, r, c) -> (b, r, c)", {2, m, n}},
                           {"f32", "(b, r, c) -> (c)", {n}},
                           {"f32", "(b, r, c) -> (r)", {m}}},
                   .outs = {{"f32", "(b, r, c) -> (b, r, c)", {2, m, n}},
                            {"f32", "(b, r, c) -> (b, c, r)", {2, n, m}},
                            {"bf16", "(b, r, c) -> (b, c, r)", {2, n, m}},
                            {"i1", "(b, r, c) -> (b, c, r)", {2, n, m}}},
                   .kernelClass = "transpose",
                   .body = R"(
    ^bb0(%x: f32, %w: bf16, %y: f32, %p: f32, %q: f32):
      %v = arith.extf %w : bf16 to f32
      %1 = arith.addf %x, %v : f32
      %2 = arith.mulf %1, %y : f32
      %3 = arith.addf %2, %p : f32
      %4 = arith.subf %3, %q : f32
      %5 = arith.truncf %4 : f32 to bf16
      %6 = arith.cmpf olt, %x, %y : f32
      kernel.yield %4, %3, %5, %6 : f32, f32, bf16, i1
)"});
    test.check(1e-2);
    test.checkInPlace(0, 1);
    test.checkInPlace(2, 0);
  }
}

// Coordinates and random bits do not depend on the schedule.
TEST(CudaTileKernel, CoordinatesAndRandomBits) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{64, 96}, {70, 33}})
    CudaCase({.space = {m, n},
              .ins = {{"i64", "(r, c) -> (c, r)", {n, m}}, {"i64", "(r, c) -> ()", {}}},
              .outs = {{"i32", "(r, c) -> (r, c)", {m, n}}, {"i64", "(r, c) -> (c, r)", {n, m}}},
              .kernelClass = "transpose",
              .body = fmt::format(R"(
    ^bb0(%x: i64, %seed: i64):
      %r = kernel.index 0
      %c = kernel.index 1
      %n = arith.constant {} : index
      %m = arith.muli %r, %n : index
      %e = arith.addi %m, %c : index
      %h = kernel.random_half stream 5 seed %seed step %seed element %e
      %i = arith.index_cast %e : index to i64
      %s = arith.addi %x, %i : i64
      kernel.yield %h, %s : i32, i64
)",
                                  n)})
        .check(0);
}

// Every row of a tile is read and written along its neighbours, and what lies between are columns
// of shared memory in different banks. A row of a tile that begins within a sector has a part of
// one more.
TEST(CudaTileKernel, BothSidesMoveSixteenBytesAtATime) {
  for (const char* element : {"f32", "bf16"})
    for (auto [m, n] : {std::pair<int64_t, int64_t>{768, 256}, {1000, 768}, {64, 1000}}) {
      CudaCase test(transpose(1, m, n, element));
      ASSERT_TRUE(test.ok());
      test.run();
      SCOPED_TRACE(fmt::format("{} x {} of {}", m, n, element));
      const int64_t width = element == std::string("f32") ? 4 : 2, bytes = m * n * width;
      const bool isAligned = m * width % 32 == 0 && n * width % 32 == 0;
      for (const ptx::Traffic& traffic :
           {test.counters().globalLoads, test.counters().globalStores}) {
        EXPECT_EQ(traffic.bytes, bytes);
        EXPECT_LE(traffic.tripSectors, bytes / 32 * (isAligned ? 110 : 115) / 100 + 2);
        EXPECT_EQ(traffic.byWidth[4], traffic.requests);
      }
      for (const ptx::Traffic& traffic :
           {test.counters().sharedLoads, test.counters().sharedStores})
        EXPECT_LE(traffic.bankConflicts, traffic.requests);
    }
}

// Without tiles: the neighbours of a chunk share lines.
TEST(CudaTileKernel, FewElementsAreReadAsTheyLie) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{4, 1000}, {1000, 3}, {16, 16}}) {
    CudaCase test(transpose(2, m, n, "f32"));
    test.check(0);
    EXPECT_EQ(test.counters().sharedStores.requests, 0);
  }
}

} // namespace
} // namespace titan::codegen::cuda::testing
