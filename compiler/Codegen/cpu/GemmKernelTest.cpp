// The generated matrix product against a sum in f64, over shapes around every tile's edge.
#include "compiler/Codegen/cpu/testing/KernelRunner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace titan::codegen::testing {
namespace {

struct Case {
  int64_t m, n, k;
  bool transposeA = false, transposeB = false, accumulate = false, bias = false, relu = false;
  int64_t batch = 1, tileM = 64, tileN = 128, padding = 0;
};

std::string moduleText(const Case& c) {
  int64_t lda = (c.transposeA ? c.m : c.k) + c.padding;
  int64_t ldb = (c.transposeB ? c.k : c.n) + c.padding, ldc = c.n + c.padding;
  int64_t strideA = (c.transposeA ? c.k : c.m) * lda;
  int64_t strideB = (c.transposeB ? c.n : c.k) * ldb, strideC = c.m * ldc;
  auto flat = [](int64_t count) { return fmt::format("memref<{}xf32>", count); };
  std::string a = flat(c.batch * strideA), b = flat(c.batch * strideB), o = flat(c.batch * strideC),
              bias = flat(c.n);
  return fmt::format(
      "func.func @f(%a: {0}, %b: {1}, %c: {2}, %d: {3}) {{\n"
      "kernel.call #kernel.gemm<batch = {4}, m = {5}, n = {6}, k = {7}, lda = {8}, ldb = {9}, "
      "ldc = {10}, strideA = {11}, strideB = {12}, strideC = {13}, transposeA = {14}, "
      "transposeB = {15}, accumulate = {16}, bias = {17}, relu = {18}, tileM = {19}, tileN = {20}> "
      "ins({21}) outs(%c : {2})\nreturn\n}}\n",
      a, b, o, bias, c.batch, c.m, c.n, c.k, lda, ldb, ldc, strideA, strideB, strideC, c.transposeA,
      c.transposeB, c.accumulate, c.bias, c.relu, c.tileM, c.tileN,
      c.bias ? fmt::format("%a, %b, %d : {}, {}, {}", a, b, bias)
             : fmt::format("%a, %b : {}, {}", a, b));
}

void check(const Case& c) {
  SCOPED_TRACE(fmt::format("{} x {} x {}, transposed {} {}, batch {}", c.m, c.n, c.k, c.transposeA,
                           c.transposeB, c.batch));
  Result<std::unique_ptr<KernelRunner>> runner = KernelRunner::compile(moduleText(c));
  ASSERT_TRUE(runner.ok()) << runner.error().message();
  auto gemm = llvm::cast<kernel::CallOp>((*runner)->kernels()[0].op).getGemm();
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> draw(-1, 1);
  auto fill = [&](int64_t count) {
    std::vector<float> values(count);
    for (float& value : values)
      value = draw(generator);
    return values;
  };
  std::vector<float> a = fill(c.batch * gemm.getStrideA()), b = fill(c.batch * gemm.getStrideB()),
                     start = fill(c.batch * gemm.getStrideC()), bias = fill(c.n);
  auto run = [&](int64_t step) {
    std::vector<float> result = start;
    std::vector<char*> operands;
    for (std::vector<float>* buffer : {&a, &b, &result, &bias})
      operands.push_back(reinterpret_cast<char*>(buffer->data()));
    (*runner)->run(0, operands, {}, step);
    return result;
  };
  std::vector<float> found = run(0);
  for (int64_t matrix = 0; matrix < c.batch; ++matrix)
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t j = 0; j < gemm.getLdc(); ++j) {
        int64_t at = matrix * gemm.getStrideC() + i * gemm.getLdc() + j;
        double want = j < c.n && !c.accumulate ? 0 : start[at];
        if (j < c.n) {
          for (int64_t k = 0; k < c.k; ++k)
            want += double(a[matrix * gemm.getStrideA() +
                             (c.transposeA ? k * gemm.getLda() + i : i * gemm.getLda() + k)]) *
                    b[matrix * gemm.getStrideB() +
                      (c.transposeB ? j * gemm.getLdb() + k : k * gemm.getLdb() + j)];
          want += c.bias ? bias[j] : 0;
          want = c.relu ? std::max(want, 0.0) : want;
        }
        ASSERT_NEAR(found[at], want, 1e-5 * (1 + std::sqrt(double(c.k)))) << i << ", " << j;
      }
  EXPECT_EQ(run(1), found) << "tile by tile";
}

TEST(GemmKernel, ShapesAroundTheTiles) {
  for (int64_t m : {1, 4, 7, 64, 65})
    for (int64_t n : {1, 10, 16, 63, 64, 65, 130})
      check({.m = m, .n = n, .k = 37, .transposeB = (m + n) % 2 == 0});
}

TEST(GemmKernel, DepthsAroundThePanels) {
  for (int64_t k : {1, 15, 16, 17, 127, 128, 129, 300})
    for (bool transposed : {false, true})
      check({.m = 9, .n = 70, .k = k, .transposeA = !transposed, .transposeB = transposed});
}

TEST(GemmKernel, Epilogues) {
  for (bool accumulate : {false, true})
    for (bool bias : {false, true})
      for (bool relu : {false, true})
        check({.m = 13,
               .n = 75,
               .k = 140,
               .transposeB = true,
               .accumulate = accumulate,
               .bias = bias,
               .relu = relu,
               .padding = 3});
}

TEST(GemmKernel, Batches) {
  check({.m = 20, .n = 33, .k = 18, .transposeA = true, .batch = 3, .tileM = 8, .tileN = 16});
  check({.m = 20, .n = 33, .k = 18, .transposeB = true, .batch = 2, .tileM = 7, .tileN = 100});
}

} // namespace
} // namespace titan::codegen::testing
