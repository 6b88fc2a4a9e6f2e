#include "runtime/program/CardProducts.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

/// A product of 4 x 4 x 4 of such operands and such a result, changed by `change`.
template <typename Change> bool suits(DType a, DType b, DType c, Change change) {
  Gemm gemm{.m = 4, .n = 4, .k = 4, .lda = 4, .ldb = 4, .ldc = 4, .a = a, .b = b, .c = c};
  change(gemm);
  return suitsCardLibrary(gemm);
}
bool suits(DType a, DType b, DType c) {
  return suits(a, b, c, [](Gemm&) {});
}

TEST(CardProducts, OperandsAreOfOneType) {
  EXPECT_TRUE(suits(DType::F32, DType::F32, DType::F32));
  EXPECT_TRUE(suits(DType::BF16, DType::BF16, DType::F32));
  EXPECT_TRUE(suits(DType::BF16, DType::BF16, DType::BF16));
  EXPECT_FALSE(suits(DType::BF16, DType::F32, DType::F32));
  EXPECT_FALSE(suits(DType::F32, DType::F32, DType::BF16));
  EXPECT_FALSE(suits(DType::F16, DType::F16, DType::F32));
}

TEST(CardProducts, SumsWantF32) {
  const auto bias = [](Gemm& gemm) { gemm.bias = true; };
  const auto sum = [](Gemm& gemm) { gemm.accumulate = true; };
  EXPECT_TRUE(suits(DType::BF16, DType::BF16, DType::F32, bias));
  EXPECT_TRUE(suits(DType::BF16, DType::BF16, DType::F32, sum));
  EXPECT_TRUE(suits(DType::BF16, DType::BF16, DType::BF16, bias));
  EXPECT_FALSE(suits(DType::BF16, DType::BF16, DType::BF16, sum));
}

TEST(CardProducts, NoReluAndNoEndlessSums) {
  const DType f32 = DType::F32;
  EXPECT_FALSE(suits(f32, f32, f32, [](Gemm& gemm) { gemm.relu = true; }));
  EXPECT_TRUE(suits(f32, f32, f32, [](Gemm& gemm) { gemm.k = int64_t{1} << 22; }));
  EXPECT_FALSE(suits(f32, f32, f32, [](Gemm& gemm) { gemm.k = (int64_t{1} << 22) + 1; }));
  EXPECT_FALSE(suits(f32, f32, f32, [](Gemm& gemm) { gemm.batch = int64_t{1} << 31; }));
}

} // namespace
} // namespace titan
