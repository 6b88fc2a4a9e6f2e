// Reductions: values, and that their bits are a function of extents alone.
#include "compiler/Codegen/cpu/testing/KernelCase.h"

#include <gtest/gtest.h>

namespace titan::codegen::testing {
namespace {

const std::string softmaxBody = R"(
    ^bb0(%v: f32):
      %max = kernel.reduce max %v over [1] : f32
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %sum = kernel.reduce add %e over [1] : f32
      %p = arith.divf %e, %sum : f32
      kernel.yield %p, %sum : f32, f32
)";

KernelSpec softmax(int64_t m, int64_t n) {
  return {.space = {m, n},
          .ins = {{"f32", "(r, c) -> (r, c)", {m, n}}},
          .outs = {{"f32", "(r, c) -> (r, c)", {m, n}}, {"f32", "(r, c) -> (r)", {m}}},
          .kernelClass = "row",
          .body = softmaxBody};
}

TEST(Reduction, RowsOfEveryLength) {
  for (int64_t n = 1; n <= 33; ++n)
    KernelCase(softmax(5, n)).check(3e-6);
  for (int64_t n : {48, 63, 64, 65, 100, 127, 128, 1000, 4096, 4097, 9001})
    KernelCase(softmax(3, n)).check(3e-6);
}

// What is kept for the pass that writes lies in a buffer of as many dimensions.
TEST(Reduction, RowsOfManyDimensions) {
  KernelCase({.space = {2, 3, 2, 3, 5},
              .ins = {{"f32", "(a, b, c, d, e) -> (a, b, c, d, e)", {2, 3, 2, 3, 5}},
                      {"f32", "(a, b, c, d, e) -> (a, c, e)", {2, 2, 5}}},
              .outs = {{"f32", "(a, b, c, d, e) -> ()", {}},
                       {"f32", "(a, b, c, d, e) -> (a, b, c, d, e)", {2, 3, 2, 3, 5}}},
              .kernelClass = "row",
              .body = R"(
    ^bb0(%v: f32, %w: f32):
      %d = arith.subf %v, %w : f32
      %e = math.exp %d : f32
      %s = arith.mulf %e, %e : f32
      %sum = kernel.reduce add %s over [0, 1, 2, 3, 4] : f32
      kernel.yield %sum, %e : f32, f32
)"})
      .check(1e-5);
}

TEST(Reduction, NarrowerVectors) {
  for (std::string_view arch : {"x86-64-v3", "x86-64-v2"})
    for (int64_t n : {1, 3, 7, 8, 9, 31, 33, 100, 5000})
      KernelCase(softmax(3, n), arch).check(3e-6);
}

TEST(Reduction, ColumnsOfEveryLength) {
  auto spec = [](int64_t m, int64_t n) {
    return KernelSpec{.space = {m, n},
                      .ins = {{"f32", "(r, c) -> (r, c)", {m, n}}, {"f32", "(r, c) -> (r)", {m}}},
                      .outs = {{"f32", "(r, c) -> (c)", {n}}, {"f32", "(r, c) -> (c)", {n}}},
                      .kernelClass = "column",
                      .body = R"(
    ^bb0(%v: f32, %w: f32):
      %p = arith.mulf %v, %w : f32
      %sum = kernel.reduce add %p over [0] : f32
      %max = kernel.reduce max %v over [0] : f32
      %q = arith.addf %sum, %max : f32
      kernel.yield %sum, %q : f32, f32
)"};
  };
  for (int64_t n = 1; n <= 33; ++n)
    KernelCase(spec(7, n)).check(1e-5);
  for (auto [m, n] :
       {std::pair<int64_t, int64_t>{64, 128}, {65, 64}, {130, 70}, {1, 20}, {1000, 3}})
    KernelCase(spec(m, n)).check(1e-5);
}

TEST(Reduction, Everything) {
  for (auto [m, n] :
       {std::pair<int64_t, int64_t>{1, 1}, {64, 10}, {128, 100}, {1, 5000}, {5000, 1}, {3, 4100}}) {
    KernelCase test({.space = {m, n},
                     .ins = {{"f32", "(r, c) -> (r, c)", {m, n}}},
                     .outs = {{"f32", "(r, c) -> ()", {}}, {"f32", "(r, c) -> (r, c)", {m, n}}},
                     .kernelClass = "row",
                     .body = R"(
    ^bb0(%v: f32):
      %s = arith.mulf %v, %v : f32
      %sum = kernel.reduce add %s over [0, 1] : f32
      %n = math.sqrt %sum : f32
      %u = arith.divf %v, %n : f32
      kernel.yield %sum, %u : f32, f32
)"});
    test.check(1e-5);
  }
}

// The loss of a classifier: rows, then their sum, with per-row and whole results.
const std::string lossBody = R"(
    ^bb0(%v: f32, %label: i64):
      %max = kernel.reduce max %v over [1] : f32
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %sum = kernel.reduce add %e over [1] : f32
      %lse = math.log %sum : f32
      %c = kernel.index 1
      %i = arith.index_cast %c : index to i64
      %hit = arith.cmpi eq, %i, %label : i64
      %zero = arith.constant 0.0 : f32
      %own = arith.select %hit, %d, %zero : f32
      %picked = kernel.reduce add %own over [1] : f32
      %loss = arith.subf %lse, %picked : f32
      %p = arith.divf %e, %sum : f32
)";

TEST(Reduction, RowsInsideOfATotal) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 4}, {5, 10}, {64, 10}, {100, 33}}) {
    KernelCase test({.space = {m, n},
                     .ins = {{"f32", "(r, c) -> (r, c)", {m, n}}, {"i64", "(r, c) -> (r)", {m}}},
                     .outs = {{"f32", "(r, c) -> ()", {}},
                              {"f32", "(r, c) -> (r, c)", {m, n}},
                              {"f32", "(r, c) -> (c)", {n}},
                              {"f32", "(r, c) -> (r)", {m}}},
                     .kernelClass = "column",
                     .body = lossBody + R"(
      %total = kernel.reduce add %loss over [0] : f32
      %columns = kernel.reduce add %p over [0] : f32
      kernel.yield %total, %p, %columns, %loss : f32, f32, f32, f32
)"});
    test.check(1e-5);
  }
}

// The same total, from a kernel of its own over the stored losses.
TEST(Reduction, FusionDoesNotChangeBits) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{64, 10}, {200, 33}, {5000, 2}}) {
    KernelCase fused({.space = {m, n},
                      .ins = {{"f32", "(r, c) -> (r, c)", {m, n}}, {"i64", "(r, c) -> (r)", {m}}},
                      .outs = {{"f32", "(r, c) -> ()", {}}, {"f32", "(r, c) -> (c)", {n}}},
                      .kernelClass = "column",
                      .body = lossBody + R"(
      %total = kernel.reduce add %loss over [0] : f32
      %columns = kernel.reduce add %p over [0] : f32
      kernel.yield %total, %columns : f32, f32
)"});
    KernelCase rows({.space = {m, n},
                     .ins = {{"f32", "(r, c) -> (r, c)", {m, n}}, {"i64", "(r, c) -> (r)", {m}}},
                     .outs = {{"f32", "(r, c) -> (r)", {m}}, {"f32", "(r, c) -> (r, c)", {m, n}}},
                     .kernelClass = "row",
                     .body = lossBody + "      kernel.yield %loss, %p : f32, f32\n"});
    KernelCase total({.space = {m},
                      .ins = {{"f32", "(i) -> (i)", {m}}},
                      .outs = {{"f32", "(i) -> ()", {}}},
                      .kernelClass = "row",
                      .body = R"(
    ^bb0(%v: f32):
      %total = kernel.reduce add %v over [0] : f32
      kernel.yield %total : f32
)"});
    KernelCase columns({.space = {m, n},
                        .ins = {{"f32", "(r, c) -> (r, c)", {m, n}}},
                        .outs = {{"f32", "(r, c) -> (c)", {n}}},
                        .kernelClass = "column",
                        .body = R"(
    ^bb0(%v: f32):
      %s = kernel.reduce add %v over [0] : f32
      kernel.yield %s : f32
)"});
    std::vector<std::string> together = fused.run(), parts = rows.run();
    total.setIn(0, decode("f32", parts[0]));
    columns.setIn(0, decode("f32", parts[1]));
    EXPECT_EQ(together[0], total.run()[0]) << m << " x " << n;
    EXPECT_EQ(together[1], columns.run()[0]) << m << " x " << n;
  }
}

TEST(Reduction, MiddleDimensionAndOtherTypes) {
  for (auto [a, b, c] : {std::array<int64_t, 3>{2, 3, 5}, {4, 70, 20}, {3, 1, 33}}) {
    for (std::string type : {"f64", "f32", "i64", "i32"}) {
      std::string body = "\n^bb0(%v: T):\n"
                         "  %s = kernel.reduce add %v over [1] : T\n"
                         "  %o = kernel.reduce add %v over [0, 2] : T\n"
                         "  %m = kernel.reduce min %s over [0, 2] : T\n"
                         "  kernel.yield %s, %o, %m : T, T, T\n";
      for (size_t at; (at = body.find('T')) != std::string::npos;)
        body.replace(at, 1, type);
      KernelCase test({.space = {a, b, c},
                       .ins = {{type, "(i, j, k) -> (i, j, k)", {a, b, c}}},
                       .outs = {{type, "(i, j, k) -> (i, k)", {a, c}},
                                {type, "(i, j, k) -> (j)", {b}},
                                {type, "(i, j, k) -> ()", {}}},
                       .kernelClass = "column",
                       .body = body});
      test.check(1e-5);
    }
  }
}

TEST(Reduction, MaximumKeepsNaN) {
  KernelCase test({.space = {2, 40},
                   .ins = {{"f32", "(r, c) -> (r, c)", {2, 40}}},
                   .outs = {{"f32", "(r, c) -> (r)", {2}}},
                   .kernelClass = "row",
                   .body = R"(
    ^bb0(%v: f32):
      %max = kernel.reduce max %v over [1] : f32
      kernel.yield %max : f32
)"});
  Elements values(80, 1.0);
  values[57] = std::numeric_limits<double>::quiet_NaN();
  test.setIn(0, values);
  test.check(0);
}

} // namespace
} // namespace titan::codegen::testing
