#include "runtime/collective/Sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace titan {
namespace {

template <typename T>
std::vector<T> sum(DType dtype, SumOrder order, const std::vector<std::vector<T>>& terms) {
  std::vector<const char*> pointers;
  for (const std::vector<T>& term : terms)
    pointers.push_back(reinterpret_cast<const char*>(term.data()));
  std::vector<T> result(terms[0].size());
  addTerms(dtype, order, pointers, reinterpret_cast<char*>(result.data()),
           static_cast<int64_t>(result.size()));
  return result;
}

TEST(Sum, RankOrderGoesFromLeftToRight) {
  // 1 is lost in 2^24, 2 is not.
  EXPECT_EQ(sum<float>(DType::F32, SumOrder::Rank, {{0x1p24f}, {1}, {1}, {-0x1p24f}})[0], 0);
  EXPECT_EQ(sum<float>(DType::F32, SumOrder::Rank, {{1}, {1}, {0x1p24f}, {-0x1p24f}})[0], 2);
}

TEST(Sum, TreeOrderAddsNeighboursFirst) {
  EXPECT_EQ(sum<float>(DType::F32, SumOrder::Tree, {{0x1p24f}, {1}, {1}, {1}})[0], 0x1p24f + 2);
  EXPECT_EQ(sum<float>(DType::F32, SumOrder::Rank, {{0x1p24f}, {1}, {1}, {1}})[0], 0x1p24f);
}

TEST(Sum, LeavesOfATreeEnterAsZeroPlusX) {
  EXPECT_FALSE(std::signbit(sum<float>(DType::F32, SumOrder::Tree, {{-0.0f}, {-0.0f}})[0]));
  EXPECT_TRUE(std::signbit(sum<float>(DType::F32, SumOrder::Rank, {{-0.0f}, {-0.0f}})[0]));
}

TEST(Sum, Bf16IsAddedInF32AndRoundedOnce) {
  // 256 + 1 rounds to 256, 256 + 1 + 1 to 258: rounded after each addition it would stay 256.
  const uint16_t big = toBFloat16(256), one = toBFloat16(1);
  EXPECT_EQ(sum<uint16_t>(DType::BF16, SumOrder::Rank, {{big}, {one}, {one}})[0], toBFloat16(258));
}

TEST(Sum, IntegersWrapAround) {
  EXPECT_EQ(sum<int64_t>(DType::I64, SumOrder::Rank, {{INT64_MAX, 5}, {1, -7}}),
            (std::vector<int64_t>{INT64_MIN, -2}));
}

TEST(Sum, BlocksDoNotShow) {
  std::vector<std::vector<double>> terms(3, std::vector<double>(5000));
  for (size_t i = 0; i < 5000; ++i)
    for (size_t term = 0; term < 3; ++term)
      terms[term][i] = static_cast<double>((term + 1) * i);
  const std::vector<double> whole = sum(DType::F64, SumOrder::Rank, terms);
  for (size_t i = 0; i < 5000; ++i)
    EXPECT_EQ(whole[i], 6.0 * static_cast<double>(i));
}

TEST(Sum, HasFourTypes) {
  for (DType dtype : {DType::F32, DType::F64, DType::I64, DType::BF16})
    EXPECT_TRUE(canSum(dtype));
  for (DType dtype : {DType::F16, DType::I32, DType::U8, DType::Bool})
    EXPECT_FALSE(canSum(dtype));
}

} // namespace
} // namespace titan
