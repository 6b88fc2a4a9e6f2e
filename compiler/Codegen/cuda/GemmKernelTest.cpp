// The generated matrix product against one chain of multiply-adds along k, bit for bit.
#include "compiler/Codegen/cuda/testing/CudaGemm.h"

#include <gtest/gtest.h>

#include <cmath>

namespace titan::codegen::cuda::testing {
namespace {

using Case = GemmCase;

/// Bit for bit one chain of multiply-adds, in three orders of blocks and warps.
void check(const Case& c) {
  SCOPED_TRACE(describe(c));
  CudaGemm gemm(c);
  ASSERT_TRUE(gemm.ok());
  std::vector<float> found = gemm.run();
  gemm.eachElement([&](const CudaGemm::Element& element) {
    float sum = 0;
    for (int64_t k = 0; k < c.k; ++k)
      sum = std::fma(gemm.a(element, k), gemm.b(element, k), sum);
    EXPECT_EQ(found[element.at], gemm.finish(element, sum)) << element.i << ", " << element.j;
  });
  EXPECT_EQ(gemm.untouched(found), "");
  EXPECT_EQ(gemm.run(ptx::Order::Descending), found);
  EXPECT_EQ(gemm.run(ptx::Order::Random), found);
  expectAssembles(gemm.ptx());
}

TEST(CudaGemmKernel, ShapesAroundTheTiles) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 1},
                      {1, 10},
                      {4, 63},
                      {63, 64},
                      {64, 65},
                      {65, 130},
                      {130, 4}})
    for (bool transposed : {false, true})
      check({.m = m, .n = n, .k = 37, .transposeA = !transposed, .transposeB = transposed});
}

TEST(CudaGemmKernel, Depths) {
  for (int64_t k : {1, 3, 15, 16, 17, 48, 100})
    check({.m = 9, .n = 20, .k = k, .transposeB = k % 2 == 0});
}

TEST(CudaGemmKernel, Epilogues) {
  for (bool accumulate : {false, true})
    for (bool bias : {false, true})
      for (bool relu : {false, true})
        check({.m = 20,
               .n = accumulate ? 24 : 23,
               .k = 18,
               .accumulate = accumulate,
               .bias = bias,
               .relu = relu});
}

TEST(CudaGemmKernel, BatchesAndLeadingDimensions) {
  for (bool transposeA : {false, true})
    for (bool transposeB : {false, true})
      check({.m = 17,
             .n = 30,
             .k = 20,
             .transposeA = transposeA,
             .transposeB = transposeB,
             .batch = 3,
             .padding = 5});
}

// Many blocks: a thread has four times the elements of C.
TEST(CudaGemmKernel, LargeTiles) {
  check({.m = 250, .n = 260, .k = 19, .transposeA = true, .batch = 11});
  check({.m = 129, .n = 65, .k = 5, .transposeB = true, .relu = true, .batch = 32});
}

TEST(CudaGemmKernel, Bf16) {
  check({.m = 17, .n = 30, .k = 20, .bf16 = true, .toBf16 = true});
  check({.m = 17, .n = 32, .k = 20, .accumulate = true, .bf16 = true});
  check({.m = 17, .n = 30, .k = 20, .bias = true, .bf16 = true, .roundsB = true});
}

TEST(CudaGemmKernel, OtherTypesAreRefused) {
  std::string text = moduleText(Case{.m = 4, .n = 4, .k = 4});
  for (size_t at = text.find("xf32"); at != std::string::npos; at = text.find("xf32", at))
    text.replace(at, 4, "xf64");
  Result<std::unique_ptr<CudaRunner>> runner = CudaRunner::compile(text);
  ASSERT_FALSE(runner.ok());
  EXPECT_NE(runner.error().message().find("a product of 'f64' has no kernel on cuda"),
            std::string::npos)
      << runner.error().message();
}

TEST(CudaGemmKernel, PatchesAreRefused) {
  std::string text = moduleText(Case{.m = 4, .n = 4, .k = 4});
  const std::string tile = "tileN = 128";
  text.replace(text.find(tile), tile.size(),
               tile + ", patchesA = <lines = [4] by [3], columns = [4] by [1], offset = 0>");
  Result<std::unique_ptr<CudaRunner>> runner = CudaRunner::compile(text);
  ASSERT_FALSE(runner.ok());
  EXPECT_NE(runner.error().message().find("a convolution has no kernel on cuda"), std::string::npos)
      << runner.error().message();
}

} // namespace
} // namespace titan::codegen::cuda::testing
