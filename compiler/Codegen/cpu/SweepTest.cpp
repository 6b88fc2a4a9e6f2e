// Kernels whose units go down rows: sums of columns beside reductions and results of each row.
#include "compiler/Codegen/cpu/testing/KernelCase.h"

#include <gtest/gtest.h>

namespace titan::codegen::testing {
namespace {

/// The gradient of a layer norm with what is added to it: the row's own sums, the sums of three
/// columns, and a result at every point.
KernelSpec normGradient(int64_t chunks, int64_t rows, int64_t columns, std::string element) {
  std::string all = "(k, r, c) -> (k, r, c)", row = "(k, r, c) -> (k, r)",
              column = "(k, r, c) -> (c)", partial = "(k, r, c) -> (k, c)";
  std::vector<int64_t> shape = {chunks, rows, columns};
  std::string widen, narrow, type = element;
  if (element != "f32") {
    widen = "%x = arith.extf %x0 : bf16 to f32\n%dy = arith.extf %dy0 : bf16 to f32\n"
            "%res = arith.extf %res0 : bf16 to f32\n";
    narrow = "%out = arith.truncf %dx2 : f32 to bf16\n";
  } else {
    widen = "%zero = arith.constant 0.0 : f32\n%x = arith.subf %x0, %zero : f32\n"
            "%dy = arith.subf %dy0, %zero : f32\n%res = arith.subf %res0, %zero : f32\n";
    narrow = "%out = arith.subf %dx2, %zero : f32\n";
  }
  return {.space = shape,
          .ins = {{element, all, shape},
                  {element, all, shape},
                  {element, all, shape},
                  {"f32", row, {chunks, rows}},
                  {"f32", row, {chunks, rows}},
                  {"f32", column, {columns}}},
          .outs = {{element, all, shape},
                   {"f32", partial, {chunks, columns}},
                   {"f32", partial, {chunks, columns}},
                   {"f32", partial, {chunks, columns}},
                   {"f32", row, {chunks, rows}}},
          .kernelClass = "column",
          .body = "^bb0(%x0: " + type + ", %dy0: " + type + ", %res0: " + type +
                  ", %mean: f32, %rstd: f32, %gamma: f32):\n" + widen + R"(
      %centred = arith.subf %x, %mean : f32
      %hat = arith.mulf %centred, %rstd : f32
      %g = arith.mulf %dy, %gamma : f32
      %sum = kernel.reduce add %g over [2] : f32
      %gh = arith.mulf %g, %hat : f32
      %dot = kernel.reduce add %gh over [2] : f32
      %scale = arith.constant 1.0e-2 : f32
      %m1 = arith.mulf %sum, %scale : f32
      %m2 = arith.mulf %dot, %scale : f32
      %a = arith.subf %g, %m1 : f32
      %b = arith.mulf %hat, %m2 : f32
      %d = arith.subf %a, %b : f32
      %dx = arith.mulf %d, %rstd : f32
      %dx2 = arith.addf %dx, %res : f32
      %dgamma0 = arith.mulf %dy, %hat : f32
      %dgamma = kernel.reduce add %dgamma0 over [1] : f32
      %dbeta = kernel.reduce add %dy over [1] : f32
      %dbias = kernel.reduce add %dx2 over [1] : f32
)" + narrow + "kernel.yield %out, %dgamma, %dbeta, %dbias, %m1 : " +
                  type + ", f32, f32, f32, f32\n"};
}

TEST(Sweep, RowsWithTheirOwnSums) {
  for (int64_t columns : {1, 5, 16, 33, 64, 100, 384, 1500})
    KernelCase(normGradient(2, 16, columns, "f32")).check(1e-4);
  for (int64_t rows : {1, 2, 7, 64})
    KernelCase(normGradient(3, rows, 40, "f32")).check(1e-4);
}

// More rows than one partial sum takes: passes over all rows instead of a sweep.
TEST(Sweep, ManyRowsAreNotSwept) { KernelCase(normGradient(2, 65, 20, "f32")).check(1e-4); }

TEST(Sweep, NarrowStorage) {
  for (int64_t columns : {5, 16, 33, 384})
    KernelCase(normGradient(2, 16, columns, "bf16")).check(1.2e-2);
}

TEST(Sweep, NarrowerVectors) {
  for (std::string_view arch : {"x86-64-v3", "x86-64-v2"})
    for (int64_t columns : {7, 33, 100}) {
      KernelCase(normGradient(2, 16, columns, "f32"), arch).check(1e-4);
      KernelCase(normGradient(2, 16, columns, "bf16"), arch).check(1.2e-2);
    }
}

TEST(Sweep, GradientOverTheGradient) {
  for (int64_t columns : {33, 384}) {
    KernelCase test(normGradient(2, 16, columns, "f32"));
    for (size_t in : {0, 1, 2})
      test.checkInPlace(in, 0);
    test.checkInPlace(3, 4);
  }
}

/// An activation's gradient and the bias gradient: no row reduction, so that units have a block of
/// columns.
KernelSpec biasGradient(int64_t chunks, int64_t rows, int64_t columns) {
  std::string all = "(k, r, c) -> (k, r, c)";
  std::vector<int64_t> shape = {chunks, rows, columns};
  return {.space = shape,
          .ins = {{"f32", all, shape}, {"f32", all, shape}},
          .outs = {{"f32", "(k, r, c) -> (k, c)", {chunks, columns}}, {"f32", all, shape}},
          .kernelClass = "column",
          .body = R"(
    ^bb0(%x: f32, %dy: f32):
      %t = math.tanh %x : f32
      %d = arith.mulf %t, %dy : f32
      %s = kernel.reduce add %d over [1] : f32
      kernel.yield %s, %d : f32, f32
)"};
}

TEST(Sweep, BlocksOfColumns) {
  for (int64_t columns : {1, 17, 64, 100, 1023, 1024, 1025, 2100})
    KernelCase(biasGradient(3, 16, columns)).check(2e-5);
  KernelCase test(biasGradient(2, 8, 1100));
  test.checkInPlace(0, 1);
  test.checkInPlace(1, 1);
}

// The order of a sum does not depend on whether its rows are swept: 64 rows at once, or with one
// more pass over them.
TEST(Sweep, KeepsTheOrderOfSums) {
  auto spec = [](bool alone) {
    KernelSpec spec = biasGradient(1, 64, 40);
    if (!alone)
      return spec;
    spec.body = R"(
    ^bb0(%x: f32, %dy: f32):
      %t = math.tanh %x : f32
      %d = arith.mulf %t, %dy : f32
      %s = kernel.reduce add %d over [1] : f32
      %all = kernel.reduce max %s over [2] : f32
      %zero = arith.subf %all, %all : f32
      %sum = arith.addf %s, %zero : f32
      kernel.yield %sum, %d : f32, f32
)";
    return spec;
  };
  EXPECT_EQ(KernelCase(spec(true)).run()[0], KernelCase(spec(false)).run()[0]);
}

/// Expensive values that several passes need are kept on the stack: the results are those of
/// computing them again.
TEST(Sweep, KeptValues) {
  auto spec = [](int64_t n) {
    return KernelSpec{.space = {3, n},
                      .ins = {{"f32", "(r, c) -> (r, c)", {3, n}},
                              {"f32", "(r, c) -> (r, c)", {3, n}},
                              {"f32", "(r, c) -> (c)", {n}}},
                      .outs = {{"f32", "(r, c) -> (r, c)", {3, n}},
                               {"f32", "(r, c) -> (r, c)", {3, n}},
                               {"i1", "(r, c) -> (r, c)", {3, n}}},
                      .kernelClass = "row",
                      .body = R"(
    ^bb0(%x: f32, %y: f32, %b: f32):
      %1 = arith.addf %x, %b : f32
      %sum = arith.addf %1, %y : f32
      %max = kernel.reduce max %sum over [1] : f32
      %d = arith.subf %sum, %max : f32
      %e = math.exp %d : f32
      %total = kernel.reduce add %e over [1] : f32
      %p = arith.divf %e, %total : f32
      %half = arith.constant 0.5 : f32
      %big = arith.cmpf ogt, %e, %half : f32
      kernel.yield %sum, %p, %big : f32, f32, i1
)"};
  };
  for (int64_t n : {1, 7, 16, 31, 100, 1000, 4096, 30000, 70000})
    KernelCase(spec(n)).check(3e-6);
  KernelCase test(spec(100));
  for (size_t in : {0, 1})
    for (size_t out : {0, 1})
      test.checkInPlace(in, out);
}

} // namespace
} // namespace titan::codegen::testing
