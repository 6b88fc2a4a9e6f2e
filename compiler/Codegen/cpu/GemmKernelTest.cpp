// The generated matrix product against a sum in f64, over shapes around every tile's edge.
#include "compiler/Codegen/cpu/GemmKernel.h"
#include "compiler/Codegen/cpu/CpuFeatures.h"
#include "compiler/Codegen/cpu/testing/KernelRunner.h"
#include "compiler/Codegen/kernel/testing/GemmCase.h"

#include "llvm/TargetParser/Host.h"
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace titan::codegen::testing {
namespace {

using Case = GemmCase;

void check(const Case& c) {
  SCOPED_TRACE(describe(c));
  // Vectors: the matrix unit has tests of its own.
  TargetInfo native = resolveCpu("native").take();
  Result<std::unique_ptr<KernelRunner>> runner =
      KernelRunner::compile(moduleText(c), native, shapeWith(MatrixUnitKind::None, native));
  ASSERT_TRUE(runner.ok()) << runner.error().message();
  auto gemm = llvm::cast<kernel::CallOp>((*runner)->kernels()[0].op).getGemm();
  std::mt19937 generator(7);
  Matrix a(c.batch * gemm.getStrideA(), c.bf16, generator),
      b(c.batch * gemm.getStrideB(), c.bf16 && !c.roundsB, generator),
      start(c.batch * gemm.getStrideC(), c.toBf16, generator), bias(c.n, c.toBf16, generator);
  auto run = [&](int64_t step) {
    Matrix result = start;
    std::vector<char*> operands;
    for (Matrix* matrix : {&a, &b, &result, &bias})
      operands.push_back(matrix->data());
    (*runner)->run(0, operands, {}, step);
    std::vector<float> values;
    for (int64_t i = 0; i < c.batch * gemm.getStrideC(); ++i)
      values.push_back(result.at(i));
    return values;
  };
  auto valueOfB = [&](int64_t i) {
    return c.roundsB ? fromBFloat16(toBFloat16(b.at(i))) : b.at(i);
  };
  std::vector<float> found = run(0);
  for (int64_t matrix = 0; matrix < c.batch; ++matrix)
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t j = 0; j < gemm.getLdc(); ++j) {
        int64_t at = matrix * gemm.getStrideC() + i * gemm.getLdc() + j;
        double want = j < c.n && !c.accumulate ? 0 : start.at(at);
        if (j < c.n) {
          for (int64_t k = 0; k < c.k; ++k)
            want += double(a.at(matrix * gemm.getStrideA() +
                                (c.transposeA ? k * gemm.getLda() + i : i * gemm.getLda() + k))) *
                    valueOfB(matrix * gemm.getStrideB() +
                             (c.transposeB ? j * gemm.getLdb() + k : k * gemm.getLdb() + j));
          want += c.bias ? bias.at(j) : 0;
          want = c.relu ? std::max(want, 0.0) : want;
        }
        double bound = 1e-5 * (1 + std::sqrt(double(c.k))) + (c.toBf16 ? std::abs(want) / 256 : 0);
        ASSERT_NEAR(found[at], want, bound) << i << ", " << j;
      }
  EXPECT_EQ(run(1), found) << "tile by tile";
  EXPECT_EQ(run(3), found) << "by parts of lines of tiles";
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

TEST(GemmKernel, BlocksOfRowsAndPanels) {
  check({.m = 1030, .n = 50, .k = 800, .transposeB = true, .tileM = 1030, .tileN = 50});
  check({.m = 1030, .n = 50, .k = 800, .transposeA = true, .tileM = 1030, .tileN = 50});
}

TEST(GemmKernel, BlocksOfColumns) {
  for (bool bf16 : {false, true})
    check({.m = 20,
           .n = 1600,
           .k = 450,
           .transposeB = true,
           .tileM = 20,
           .tileN = 1600,
           .bf16 = bf16,
           .toBf16 = bf16});
}

TEST(GemmKernel, LinesOfUnits) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{70, 200}, {200, 70}})
    check({.m = m, .n = n, .k = 30, .transposeB = true, .batch = 2, .tileM = 32, .tileN = 16});
}

TEST(GemmKernel, PairsOfBf16) {
  for (bool toBf16 : {false, true})
    for (int64_t k : {1, 2, 15, 31, 32, 33, 128, 769, 1601})
      for (bool transposed : {false, true})
        check({.m = 21,
               .n = 65,
               .k = k,
               .transposeA = !transposed,
               .transposeB = transposed,
               .tileM = 16,
               .tileN = 32,
               .padding = k % 2,
               .bf16 = true,
               .toBf16 = toBf16});
}

// The instruction for pairs adds the second product of a pair first, and so does what replaces it.
TEST(GemmKernel, WidenedBf16GivesTheBitsOfPairs) {
  if (!llvm::sys::getHostCPUFeatures().lookup("avx512bf16"))
    GTEST_SKIP() << "this CPU has no vdpbf16ps";
  TargetInfo target = resolveCpu("cooperlake").take();
  for (bool transposed : {false, true})
    for (int64_t k : {1, 33, 385, 900}) {
      GemmCase c = {.m = 21,
                    .n = 65,
                    .k = k,
                    .transposeA = !transposed,
                    .transposeB = transposed,
                    .bf16 = true};
      SCOPED_TRACE(describe(c));
      std::vector<std::vector<float>> results;
      for (double rate : {0.5, 2.0}) {
        VectorShape shape = shapeWith(MatrixUnitKind::None, target);
        shape.bf16DotRate = rate;
        auto runner = KernelRunner::compile(moduleText(c), target, shape);
        ASSERT_TRUE(runner.ok()) << runner.error().message();
        std::mt19937 generator(3);
        Matrix a(c.m * k, true, generator), b(c.n * k, true, generator),
            result(c.m * c.n, false, generator);
        char* operands[] = {a.data(), b.data(), result.data()};
        (*runner)->run(0, operands);
        results.push_back(result.values);
      }
      EXPECT_EQ(results[0], results[1]);
    }
}

TEST(GemmKernel, PairsOfBf16PayOffOnAmd) {
  auto shapeOf = [](const char* arch) { return vectorShape(resolveCpu(arch).take()); };
  for (const char* arch : {"znver4", "znver5"})
    EXPECT_TRUE(shapeOf(arch).usesBf16Dot()) << arch;
  for (const char* arch : {"cooperlake", "sapphirerapids", "graniterapids", "x86-64-v4"})
    EXPECT_FALSE(shapeOf(arch).usesBf16Dot()) << arch;
}

TEST(GemmKernel, RoundsB) {
  for (int64_t k : {1, 15, 32, 33, 67, 801})
    for (bool transposed : {false, true})
      check({.m = 21,
             .n = 65,
             .k = k,
             .transposeB = transposed,
             .tileM = 16,
             .tileN = 64,
             .padding = 1,
             .bf16 = true,
             .toBf16 = true,
             .roundsB = true});
}

TEST(GemmKernel, EpiloguesOfBf16) {
  for (bool bias : {false, true})
    for (bool relu : {false, true})
      for (int64_t k : {96, 1000})
        check({.m = 17,
               .n = 100,
               .k = k,
               .transposeB = true,
               .bias = bias,
               .relu = relu,
               .bf16 = true,
               .toBf16 = true});
  check({.m = 17, .n = 100, .k = 60, .transposeA = true, .accumulate = true, .bf16 = true});
  check({.m = 20,
         .n = 33,
         .k = 18,
         .transposeB = true,
         .batch = 3,
         .tileM = 8,
         .tileN = 16,
         .bf16 = true,
         .toBf16 = true});
}

TEST(GemmKernel, Batches) {
  check({.m = 20, .n = 33, .k = 18, .transposeA = true, .batch = 3, .tileM = 8, .tileN = 16});
  check({.m = 20, .n = 33, .k = 18, .transposeB = true, .batch = 2, .tileM = 7, .tileN = 100});
}

} // namespace
} // namespace titan::codegen::testing
