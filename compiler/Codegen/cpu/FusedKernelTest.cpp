// Every kernel here is run on data and compared with its definition in f64
// (testing/KernelReference.h), and with itself when its units are divided differently.
#include "compiler/Codegen/cpu/testing/KernelCase.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace titan::codegen::testing {
namespace {

constexpr const char* flatBody = R"(
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      %e = math.exp %a : f32
      %t = math.tanh %s : f32
      %p = arith.mulf %e, %t : f32
      kernel.yield %p : f32
)";

TEST(FusedKernel, FlatTails) {
  for (int64_t n :
       {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 100, 4095, 4096, 4097, 9000}) {
    KernelCase test({.space = {n},
                     .ins = {{"f32", "(i) -> (i)", {n}}, {"f32", "(i) -> (i)", {n}}},
                     .outs = {{"f32", "(i) -> (i)", {n}}},
                     .kernelClass = "flat",
                     .body = flatBody});
    test.check(2e-6);
  }
}

TEST(FusedKernel, BroadcastPatterns) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 1},
                      {5, 7},
                      {33, 16},
                      {3, 100},
                      {64, 10},
                      {1, 50},
                      {50, 1}}) {
    // A bias along rows, a scale per row, and a scalar.
    KernelCase test({.space = {m, n},
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
  }
}

TEST(FusedKernel, TransposedOperandsAndSlices) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 3}, {5, 7}, {16, 16}, {33, 20}}) {
    KernelCase test(
        {.space = {m, n},
         .ins = {{"f32", "(r, c) -> (c, r)", {n, m}},
                 {"f32", "(r, c) -> (r * 2 + 1, c)", {2 * m, n}}},
         .outs = {{"f32", "(r, c) -> (r, c)", {m, n}}, {"f32", "(r, c) -> (c, r)", {n, m}}},
         .kernelClass = "transpose",
         .body = R"(
    ^bb0(%x: f32, %y: f32):
      %1 = arith.addf %x, %y : f32
      %2 = arith.subf %x, %y : f32
      kernel.yield %1, %2 : f32, f32
)"});
    test.check(1e-6);
  }
}

/// Three operands of `element` are three results.
std::string copies(const std::string& element) {
  std::string body = R"(
    ^bb0(%a: E, %b: E, %c: E):
      kernel.yield %a, %b, %c : E, E, E
)";
  for (size_t at = 0; (at = body.find('E', at)) != std::string::npos;)
    body.replace(at, 1, element);
  return body;
}

// Lanes that lie in memory last to first, whole vectors and rests of them, also along the rows.
TEST(FusedKernel, ReadsAndWritesBackwards) {
  for (int64_t n : {1, 2, 7, 8, 15, 16, 17, 33, 100, 1025})
    for (std::string element : {"f32", "f64", "bf16", "i32", "i1"}) {
      const int64_t rows = 3;
      std::string last = std::to_string(n - 1), backwards = "(r, c) -> (r, -c + " + last + ")",
                  both = "(r, c) -> (-r + 2, -c + " + last + ")";
      KernelCase test({.space = {rows, n},
                       .ins = {{element, backwards, {rows, n}},
                               {element, "(r, c) -> (r, c)", {rows, n}},
                               {element, both, {rows, n}}},
                       .outs = {{element, "(r, c) -> (r, c)", {rows, n}},
                                {element, backwards, {rows, n}},
                                {element, "(r, c) -> (r, c)", {rows, n}}},
                       .kernelClass = "transpose",
                       .body = copies(element)});
      test.check(0);
    }
}

// Channels of images, last in the space: vectors lie along other dimensions, whichever operands do.
TEST(FusedKernel, ShortInnermostDimensions) {
  for (int64_t channels : {2, 3, 7})
    for (auto [samples, places] :
         {std::pair<int64_t, int64_t>{1, 8}, {2, 7}, {5, 9}, {2, 5000}, {100, 2}})
      for (std::string element : {"f32", "f64", "bf16", "i32", "i1"}) {
        const std::string last = "(n, x, c) -> (n, x, c)", first = "(n, x, c) -> (n, c, x)";
        KernelCase test({.space = {samples, places, channels},
                         .ins = {{element, first, {samples, channels, places}},
                                 {element, last, {samples, places, channels}},
                                 {element, "(n, x, c) -> (c)", {channels}}},
                         .outs = {{element, last, {samples, places, channels}},
                                  {element, first, {samples, channels, places}},
                                  {element, "(n, x, c) -> (x, n, c)", {places, samples, channels}}},
                         .kernelClass = "transpose",
                         .body = copies(element)});
        test.check(0);
      }
}

TEST(FusedKernel, TruthValuesAreBytes) {
  for (int64_t n : {1, 15, 16, 40, 100}) {
    KernelCase test({.space = {n},
                     .ins = {{"f32", "(i) -> (i)", {n}}, {"i1", "(i) -> (i)", {n}}},
                     .outs = {{"i1", "(i) -> (i)", {n}}, {"f32", "(i) -> (i)", {n}}},
                     .kernelClass = "flat",
                     .body = R"(
    ^bb0(%x: f32, %m: i1):
      %zero = arith.constant 0.0 : f32
      %c = arith.cmpf ogt, %x, %zero : f32
      %s = arith.select %m, %x, %zero : f32
      kernel.yield %c, %s : i1, f32
)"});
    test.check(0);
  }
}

TEST(FusedKernel, IntegersAndIndices) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{4, 10}, {3, 33}, {7, 1}}) {
    KernelCase test(
        {.space = {m, n},
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
)"});
    test.check(0);
  }
}

TEST(FusedKernel, ScalarsAndRankZero) {
  KernelCase test({.space = {},
                   .ins = {{"f32", "() -> ()", {}}, {"i64", "() -> ()", {}}},
                   .outs = {{"f32", "() -> ()", {}}, {"i64", "() -> ()", {}}},
                   .scalars = 1,
                   .kernelClass = "flat",
                   .body = R"(
    ^bb0(%x: f32, %t: i64, %s: index):
      %si = arith.index_cast %s : index to i64
      %n = arith.addi %t, %si : i64
      %w = arith.extf %x : f32 to f64
      %f = arith.sitofp %n : i64 to f64
      %p = math.powf %w, %f : f64
      %r = arith.truncf %p : f64 to f32
      kernel.yield %r, %n : f32, i64
)"});
  test.check(1e-6);
}

// Ties, what overflows, and no numbers, on CPUs with and without the instruction: a value that
// belongs to a row is rounded alone, one that varies along it in a vector.
TEST(FusedKernel, RoundingToBf16) {
  const double tie = 1 + 1.0 / 256, large = std::numeric_limits<float>::max(),
               infinity = std::numeric_limits<double>::infinity();
  const Elements values = {tie,   -tie,   tie + 1.0 / 128, tie + 1e-6, tie - 1e-6, 0,        -0.0,
                           large, -large, infinity,        -infinity,  NAN,        0x1p-126, 3.2e38,
                           1e30,  -1e-30, 1.0 / 3,         2};
  const auto n = static_cast<int64_t>(values.size());
  for (std::string_view arch : {"native", "x86-64-v3"}) {
    KernelCase test({.space = {n, 3},
                     .ins = {{"f32", "(r, c) -> (r)", {n}}, {"f32", "(r, c) -> (r, c)", {n, 3}}},
                     .outs = {{"bf16", "(r, c) -> (r)", {n}}, {"bf16", "(r, c) -> (r, c)", {n, 3}}},
                     .kernelClass = "flat",
                     .body = R"(
    ^bb0(%a: f32, %b: f32):
      %x = arith.truncf %a : f32 to bf16
      %y = arith.truncf %b : f32 to bf16
      kernel.yield %x, %y : bf16, bf16
)"},
                    arch);
    Elements all;
    for (double value : values)
      all.insert(all.end(), 3, value);
    test.setIn(0, values);
    test.setIn(1, all);
    const std::vector<std::string> outs = test.run();
    for (const auto& [out, in] : {std::pair(outs[0], values), {outs[1], all}}) {
      const Elements found = decode("bf16", out), wanted = decode("bf16", encode("bf16", in));
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_TRUE(found[i] == wanted[i] || (std::isnan(found[i]) && std::isnan(in[i])))
            << in[i] << " became " << found[i] << " for " << arch;
    }
  }
}

} // namespace
} // namespace titan::codegen::testing
