// Every kernel here becomes PTX, runs on the interpreter in three orders, is compared with its
// definition in f64 (kernel/testing/KernelReference.h), and is assembled.
#include "compiler/Codegen/cuda/testing/CudaCase.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace titan::codegen::cuda::testing {
namespace {

constexpr const char* flatBody = R"(
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      %e = math.exp %a : f32
      %t = math.tanh %s : f32
      %p = arith.mulf %e, %t : f32
      kernel.yield %p : f32
)";

KernelSpec flat(int64_t n, int64_t offset = 0) {
  return {.space = {n},
          .ins = {{"f32", "(i) -> (i)", {n}, offset}, {"f32", "(i) -> (i)", {n}}},
          .outs = {{"f32", "(i) -> (i)", {n}}},
          .kernelClass = "flat",
          .body = flatBody};
}

TEST(CudaFusedKernel, FlatTails) {
  for (int64_t n : {1, 2, 7, 8, 9, 31, 33, 255, 2047, 2048, 2049, 9000})
    CudaCase(flat(n)).check(2e-6);
}

TEST(CudaFusedKernel, AlignmentDecidesTheWidth) {
  for (auto [offset, width] : {std::pair<int64_t, size_t>{0, 4}, {8, 3}, {4, 2}}) {
    CudaCase test(flat(4096, offset));
    test.check(2e-6);
    // The second in is aligned to 16 bytes, the first to `offset`.
    const ptx::Traffic& loads = test.counters().globalLoads;
    EXPECT_GT(loads.byWidth[width], 0) << "offset " << offset;
    EXPECT_GT(loads.byWidth[4], 0);
    EXPECT_EQ(test.counters().globalStores.byWidth[4], test.counters().globalStores.requests);
  }
}

TEST(CudaFusedKernel, BroadcastPatterns) {
  for (auto [m, n] :
       {std::pair<int64_t, int64_t>{1, 1}, {5, 7}, {33, 16}, {3, 100}, {64, 10}, {50, 1}}) {
    // A bias along rows, a scale per row, and a scalar.
    CudaCase test({.space = {m, n},
                   .ins = {{"f32", "(r, c) -> (r, c)", {m, n}},
                           {"f32", "(r, c) -> (c)", {n}},
                           {"f32", "(r, c) -> (r)", {m}},
                           {"f32", "(r, c) -> ()", {}}},
                   .outs = {{"f32", "(r, c) -> (r, c)", {m, n}}},
                   .kernelClass = "flat",
                   .body = R"(
    ^bb0(%x: f32, %b: f32, %s: f32, %k: f32):
      %1 = arith.addf %x, %b : f32
      %2 = arith.mulf %1, %s : f32
      %3 = arith.subf %2, %k : f32
      kernel.yield %3 : f32
)"});
    test.check(1e-6);
    test.checkInPlace(0, 0);
  }
}

TEST(CudaFusedKernel, TransposedOperandsAndSlices) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 3}, {5, 7}, {16, 16}, {33, 20}})
    CudaCase({.space = {m, n},
              .ins = {{"f32", "(r, c) -> (c, r)", {n, m}},
                      {"f32", "(r, c) -> (r * 2 + 1, c)", {2 * m, n}}},
              .outs = {{"f32", "(r, c) -> (r, c)", {m, n}}, {"f32", "(r, c) -> (c, r)", {n, m}}},
              .kernelClass = "transpose",
              .body = R"(
    ^bb0(%x: f32, %y: f32):
      %1 = arith.addf %x, %y : f32
      %2 = arith.subf %x, %y : f32
      kernel.yield %1, %2 : f32, f32
)"})
        .check(1e-6);
}

TEST(CudaFusedKernel, ReadsAndWritesBackwards) {
  for (int64_t n : {1, 7, 8, 40, 333}) {
    const std::string last = std::to_string(n - 1);
    CudaCase({.space = {3, n},
              .ins = {{"f32", "(r, c) -> (r, -c + " + last + ")", {3, n}},
                      {"f32", "(r, c) -> (-r + 2, c)", {3, n}}},
              .outs = {{"f32", "(r, c) -> (r, c)", {3, n}},
                       {"f32", "(r, c) -> (-r + 2, -c + " + last + ")", {3, n}}},
              .kernelClass = "transpose",
              .body = R"(
    ^bb0(%x: f32, %y: f32):
      %1 = arith.addf %x, %y : f32
      kernel.yield %1, %x : f32, f32
)"})
        .check(1e-6);
  }
}

TEST(CudaFusedKernel, AnglesAndSmallExponentials) {
  for (int64_t n : {1, 9, 333})
    CudaCase({.space = {n},
              .ins = {{"f32", "(i) -> (i)", {n}}},
              .outs = {{"f32", "(i) -> (i)", {n}}, {"f32", "(i) -> (i)", {n}}},
              .kernelClass = "flat",
              .body = R"(
    ^bb0(%x: f32):
      %1 = math.atan %x : f32
      %2 = math.expm1 %x : f32
      kernel.yield %1, %2 : f32, f32
)"})
        .check(2e-6);
}

TEST(CudaFusedKernel, TruthValuesAreBytes) {
  for (int64_t n : {1, 15, 16, 40, 100})
    CudaCase({.space = {n},
              .ins = {{"f32", "(i) -> (i)", {n}}, {"i1", "(i) -> (i)", {n}}},
              .outs = {{"i1", "(i) -> (i)", {n}}, {"f32", "(i) -> (i)", {n}}},
              .kernelClass = "flat",
              .body = R"(
    ^bb0(%x: f32, %m: i1):
      %zero = arith.constant 0.0 : f32
      %c = arith.cmpf ogt, %x, %zero : f32
      %s = arith.select %m, %x, %zero : f32
      kernel.yield %c, %s : i1, f32
)"})
        .check(0);
}

TEST(CudaFusedKernel, Bf16IsStoredRounded) {
  for (int64_t n : {8, 13, 64})
    CudaCase({.space = {5, n},
              .ins = {{"bf16", "(r, c) -> (r, c)", {5, n}}, {"f32", "(r, c) -> (c)", {n}}},
              .outs = {{"bf16", "(r, c) -> (r, c)", {5, n}}},
              .kernelClass = "flat",
              .body = R"(
    ^bb0(%x: bf16, %b: f32):
      %w = arith.extf %x : bf16 to f32
      %s = arith.addf %w, %b : f32
      %r = arith.truncf %s : f32 to bf16
      kernel.yield %r : bf16
)"})
        .check(4e-3);
}

TEST(CudaFusedKernel, IntegersAndIndices) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{4, 10}, {3, 33}, {7, 1}})
    CudaCase({.space = {m, n},
              .ins = {{"i64", "(r, c) -> (r)", {m}}, {"i64", "(r, c) -> (r, c)", {m, n}}},
              .outs = {{"f32", "(r, c) -> (r, c)", {m, n}}, {"i64", "(r, c) -> (r, c)", {m, n}}},
              .kernelClass = "flat",
              .body = R"(
    ^bb0(%label: i64, %v: i64):
      %c = kernel.index 1
      %i = arith.index_cast %c : index to i64
      %hit = arith.cmpi eq, %i, %label : i64
      %f = arith.uitofp %hit : i1 to f32
      %one = arith.constant 3 : i64
      %d = arith.divsi %one, %v : i64
      kernel.yield %f, %d : f32, i64
)"})
        .check(0);
}

TEST(CudaFusedKernel, DivisionsRoundAsTheySay) {
  CudaCase test({.space = {6, 7},
                 .ins = {{"i64", "(r, c) -> (r, c)", {6, 7}}},
                 .outs = {{"i64", "(r, c) -> (r, c)", {6, 7}}, {"i64", "(r, c) -> (r, c)", {6, 7}}},
                 .kernelClass = "flat",
                 .body = R"(
    ^bb0(%v: i64):
      %c = kernel.index 1
      %three = arith.constant 3 : index
      %d = arith.ceildivui %c, %three : index
      %i = arith.index_cast %d : index to i64
      %five = arith.constant 5 : i64
      %low = arith.subi %v, %five : i64
      %f = arith.floordivsi %low, %five : i64
      %s = arith.addi %f, %i : i64
      %g = arith.ceildivsi %low, %five : i64
      kernel.yield %s, %g : i64, i64
)"});
  test.check(0);
}

// The learning rate of a cosine schedule, and Adam's powers of beta: f64, without libm.
TEST(CudaFusedKernel, ScalarsRankZeroAndFunctionsOfF64) {
  CudaCase({.space = {},
            .ins = {{"f32", "() -> ()", {}}, {"i64", "() -> ()", {}}},
            .outs = {{"f64", "() -> ()", {}}, {"i64", "() -> ()", {}}, {"f64", "() -> ()", {}}},
            .scalars = 1,
            .kernelClass = "flat",
            .body = R"(
    ^bb0(%x: f32, %t: i64, %s: index):
      %si = arith.index_cast %s : index to i64
      %n = arith.addi %t, %si : i64
      %w = arith.extf %x : f32 to f64
      %f = arith.sitofp %n : i64 to f64
      %p = math.powf %w, %f : f64
      %angle = arith.mulf %w, %f : f64
      %c = math.cos %angle : f64
      kernel.yield %p, %n, %c : f64, i64, f64
)"})
      .check(1e-14);
}

// Within an ulp, and the special values of C's pow.
TEST(CudaFusedKernel, PowersOfF32) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Elements special = {0,    -0.0, 1,     -1,    2,        -2,        0.5,     -0.5,   3,
                            -3,   1e30, -1e30, 1e-30, 1e-42,    -1e-42,    1.7,     1.0001, 0.9999,
                            1e38, NAN,  126.5, -7,    infinity, -infinity, 16777217};
  Elements bases, exponents;
  for (double base : special)
    for (double exponent : special) {
      bases.push_back(static_cast<float>(base));
      exponents.push_back(static_cast<float>(exponent));
    }
  std::mt19937 generator(3);
  for (int i = 0; i < 2000; ++i) {
    bases.push_back(static_cast<float>(std::exp2(generator() % 60000 / 500.0 - 60)));
    exponents.push_back(static_cast<float>(generator() % 60000 / 15000.0 - 2));
  }
  const auto n = static_cast<int64_t>(bases.size());
  CudaCase test({.space = {n},
                 .ins = {{"f32", "(i) -> (i)", {n}}, {"f32", "(i) -> (i)", {n}}},
                 .outs = {{"f32", "(i) -> (i)", {n}}},
                 .kernelClass = "flat",
                 .body = R"(
    ^bb0(%x: f32, %y: f32):
      %p = math.powf %x, %y : f32
      kernel.yield %p : f32
)"});
  ASSERT_TRUE(test.ok());
  test.setIn(0, bases);
  test.setIn(1, exponents);
  const Elements found = codegen::testing::decode("f32", test.run()[0]);
  for (int64_t i = 0; i < n; ++i) {
    const auto want = static_cast<float>(std::pow(bases[i], exponents[i]));
    const auto is = static_cast<float>(found[i]);
    if (std::isnan(want))
      EXPECT_TRUE(std::isnan(is)) << bases[i] << " ^ " << exponents[i] << " = " << is;
    else
      EXPECT_TRUE(is == want || is == std::nextafter(want, is))
          << bases[i] << " ^ " << exponents[i] << " = " << is << ", not " << want;
    EXPECT_TRUE(std::isnan(want) || std::signbit(is) == std::signbit(want));
  }
  expectAssembles(test.ptx());
}

TEST(CudaFusedKernel, WhatHasNoCodeIsNamed) {
  auto message = [](const char* body) {
    const KernelSpec spec{.space = {4},
                          .ins = {{"f64", "(i) -> (i)", {4}}},
                          .outs = {{"f64", "(i) -> (i)", {4}}},
                          .kernelClass = "flat",
                          .body = body};
    Result<std::unique_ptr<CudaRunner>> runner = CudaRunner::compile(moduleText(spec));
    return runner.ok() ? std::string("compiled") : runner.error().message();
  };
  EXPECT_NE(message("^bb0(%x: f64):\n %y = math.exp %x : f64\n kernel.yield %y : f64\n")
                .find("math.exp on 'f64' has no code on cuda"),
            std::string::npos);
  EXPECT_NE(message("^bb0(%x: f64):\n %y = arith.remf %x, %x : f64\n kernel.yield %y : f64\n")
                .find("arith.remf on 'f64' has no code on cuda"),
            std::string::npos);
  EXPECT_NE(message("^bb0(%x: f64):\n %h = arith.truncf %x : f64 to f16\n"
                    " %y = arith.extf %h : f16 to f64\n kernel.yield %y : f64\n")
                .find("values of 'f16' have no code on cuda"),
            std::string::npos);
}

TEST(CudaFusedKernel, ReductionsWithoutAScheduleAreNamed) {
  const KernelSpec spec{.space = {4, 5, 6},
                        .ins = {{"f32", "(a, b, c) -> (a, b, c)", {4, 5, 6}}},
                        .outs = {{"f32", "(a, b, c) -> (a)", {4}}, {"f32", "(a, b, c) -> ()", {}}},
                        .kernelClass = "column",
                        .body = R"(
    ^bb0(%v: f32):
      %s = kernel.reduce add %v over [1, 2] : f32
      %t = kernel.reduce add %v over [0, 1, 2] : f32
      kernel.yield %s, %t : f32, f32
)"};
  Result<std::unique_ptr<CudaRunner>> runner = CudaRunner::compile(moduleText(spec));
  ASSERT_FALSE(runner.ok());
  EXPECT_NE(runner.error().message().find("sums over dimensions that no schedule on cuda covers"),
            std::string::npos)
      << runner.error().message();
}

// Dropout: a Philox block serves a chunk where it begins at one, and each element elsewhere.
TEST(CudaFusedKernel, RandomBits) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{4, 64}, {3, 21}})
    CudaCase({.space = {m, n},
              .ins = {{"i64", "(r, c) -> ()", {}}, {"i64", "(r, c) -> ()", {}}},
              .outs = {{"i32", "(r, c) -> (r, c)", {m, n}}},
              .kernelClass = "flat",
              .body = R"(
    ^bb0(%seed: i64, %step: i64):
      %r = kernel.index 0
      %c = kernel.index 1
      %n = arith.constant )" +
                      std::to_string(n) +
                      R"( : index
      %m = arith.muli %r, %n : index
      %e = arith.addi %m, %c : index
      %h = kernel.random_half stream 5 seed %seed step %step element %e
      kernel.yield %h : i32
)"})
        .check(0);
}

} // namespace
} // namespace titan::codegen::cuda::testing
