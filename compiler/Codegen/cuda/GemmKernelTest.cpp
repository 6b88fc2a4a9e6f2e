// The generated matrix product against a sum in f64, and against one chain of multiply-adds along
// k, bit for bit.
#include "compiler/Codegen/cuda/testing/CudaRunner.h"
#include "compiler/Codegen/kernel/testing/GemmCase.h"
#include "runtime/program/DType.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace titan::codegen::cuda::testing {
namespace {

using Case = codegen::testing::GemmCase;
using codegen::testing::Matrix;

void check(const Case& c) {
  SCOPED_TRACE(describe(c));
  Result<std::unique_ptr<CudaRunner>> runner = CudaRunner::compile(moduleText(c));
  ASSERT_TRUE(runner.ok()) << runner.error().message();
  auto gemm = llvm::cast<kernel::CallOp>((*runner)->kernels()[0]).getGemm();
  std::mt19937 generator(7);
  Matrix a(c.batch * gemm.getStrideA(), c.bf16, generator),
      b(c.batch * gemm.getStrideB(), c.bf16 && !c.roundsB, generator),
      start(c.batch * gemm.getStrideC(), c.toBf16, generator), bias(c.n, false, generator);
  auto bytesOf = [](const Matrix& matrix) {
    return static_cast<int64_t>(matrix.values.size() * (matrix.bf16 ? 2 : 4));
  };
  auto run = [&](ptx::Order order) {
    Matrix result = start;
    ptx::Memory memory;
    std::vector<uint64_t> operands;
    auto place = [&](Matrix& matrix) {
      Result<uint64_t> address = memory.allocate(bytesOf(matrix));
      std::memcpy(memory.bytes(*address, bytesOf(matrix)).data(), matrix.data(), bytesOf(matrix));
      memory.markWritten(*address, bytesOf(matrix));
      operands.push_back(*address);
    };
    place(a);
    place(b);
    place(result);
    if (c.bias)
      place(bias);
    Result<ptx::Counters> counters = (*runner)->run(0, operands, {}, order, memory);
    EXPECT_TRUE(counters.ok()) << counters.error().message() << "\n" << (*runner)->ptx();
    std::memcpy(result.data(), memory.bytes(operands[2], bytesOf(result)).data(), bytesOf(result));
    std::vector<float> values;
    for (int64_t i = 0; i < c.batch * gemm.getStrideC(); ++i)
      values.push_back(result.at(i));
    return values;
  };
  auto valueOfB = [&](int64_t i) {
    return c.roundsB ? fromBFloat16(toBFloat16(b.at(i))) : b.at(i);
  };
  std::vector<float> found = run(ptx::Order::Ascending);
  for (int64_t matrix = 0; matrix < c.batch; ++matrix)
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t j = 0; j < gemm.getLdc(); ++j) {
        const int64_t at = matrix * gemm.getStrideC() + i * gemm.getLdc() + j;
        float want = start.at(at);
        if (j < c.n) {
          float sum = 0;
          for (int64_t k = 0; k < c.k; ++k)
            sum = std::fma(a.at(matrix * gemm.getStrideA() +
                                (c.transposeA ? k * gemm.getLda() + i : i * gemm.getLda() + k)),
                           valueOfB(matrix * gemm.getStrideB() +
                                    (c.transposeB ? j * gemm.getLdb() + k : k * gemm.getLdb() + j)),
                           sum);
          want = c.accumulate ? want + sum : sum;
          want = c.bias ? want + bias.at(j) : want;
          want = c.relu ? std::max(want, 0.0F) : want;
          want = c.toBf16 ? fromBFloat16(toBFloat16(want)) : want;
        }
        ASSERT_EQ(found[at], want) << i << ", " << j;
      }
  EXPECT_EQ(run(ptx::Order::Descending), found);
  EXPECT_EQ(run(ptx::Order::Random), found);
  expectAssembles((*runner)->ptx());
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

} // namespace
} // namespace titan::codegen::cuda::testing
