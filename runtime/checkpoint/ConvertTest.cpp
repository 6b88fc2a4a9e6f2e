#include "runtime/checkpoint/Convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace titan::checkpoint {
namespace {

template <typename To, typename From>
std::vector<To> converted(DType from, DType to, const std::vector<From>& values) {
  std::vector<To> results(values.size());
  const Status status = convertElements(
      from, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(From)}, to,
      {reinterpret_cast<char*>(results.data()), results.size() * sizeof(To)});
  EXPECT_TRUE(status.ok()) << status.error().message();
  return results;
}

TEST(Convert, KnowsWhichTypesHaveAllValuesOfAnother) {
  using enum DType;
  EXPECT_TRUE(isExact(BF16, F32) && isExact(F16, F32) && isExact(F32, F64) && isExact(BF16, F64));
  EXPECT_FALSE(isExact(F16, BF16) || isExact(BF16, F16) || isExact(F32, BF16) || isExact(F64, F32));
  EXPECT_FALSE(isExact(I32, F64) || isExact(F32, I64));
}

TEST(Convert, OfEachHalfToFloatAndBackGivesTheSameBits) {
  std::vector<uint16_t> all(1 << 16);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<uint16_t>(i);
  for (DType half : {DType::BF16, DType::F16})
    for (DType wide : {DType::F32, DType::F64}) {
      std::vector<uint16_t> back;
      if (wide == DType::F32)
        back = converted<uint16_t>(wide, half, converted<float>(half, wide, all));
      else
        back = converted<uint16_t>(wide, half, converted<double>(half, wide, all));
      for (size_t i = 0; i < all.size(); ++i) {
        const float value = half == DType::BF16 ? fromBFloat16(all[i]) : fromFloat16(all[i]);
        if (!std::isnan(value))
          EXPECT_EQ(back[i], all[i]) << name(half) << " " << i;
      }
    }
}

TEST(Convert, RoundsToNearestEven) {
  EXPECT_EQ(
      converted<uint16_t>(DType::F32, DType::BF16,
                          std::vector<float>{1.0f, 0x1.01p0f, 0x1.03p0f, 0x1.010002p0f, -0.0f}),
      (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f82, 0x3f81, 0x8000}));
  EXPECT_EQ(converted<float>(DType::F64, DType::F32,
                             std::vector<double>{0x1.0000010p0, 0x1.0000030p0, 0x1.00000101p0}),
            (std::vector<float>{1.0f, 0x1.000004p0f, 0x1.000002p0f}));
}

// Rounded twice, by way of a float, each of these would be another number.
TEST(Convert, FromDoubleRoundsOnce) {
  EXPECT_EQ(converted<uint16_t>(DType::F64, DType::BF16,
                                std::vector<double>{0x1.0100000001p0, 0x1.02fffffffffp0,
                                                    -0x1.0100000001p0, 0x1.01p-130 + 0x1p-180}),
            (std::vector<uint16_t>{0x3f81, 0x3f81, 0xbf81, 0x0008}));
  EXPECT_EQ(converted<uint16_t>(DType::F64, DType::F16,
                                std::vector<double>{0x1.00200000001p0, 0x1.005fffffffffp0}),
            (std::vector<uint16_t>{0x3c01, 0x3c01}));
}

TEST(Convert, KeepsInfinitiesAndNaN) {
  const std::vector<float> odd = {std::numeric_limits<float>::infinity(),
                                  -std::numeric_limits<float>::infinity(),
                                  std::numeric_limits<float>::quiet_NaN()};
  for (DType to : {DType::BF16, DType::F16}) {
    const auto halves = converted<uint16_t>(DType::F32, to, odd);
    const auto back = converted<float>(to, DType::F32, halves);
    EXPECT_EQ(back[0], odd[0]);
    EXPECT_EQ(back[1], odd[1]);
    EXPECT_TRUE(std::isnan(back[2]));
  }
}

TEST(Convert, RefusesAValueThatBecomesInfinite) {
  const auto refused = [](DType from, DType to, const auto& values, const char* says) {
    std::string into(64, '\0');
    const Status status = convertElements(
        from, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])}, to,
        into);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), ErrorCode::BadInput);
    EXPECT_EQ(status.error().message(), says);
  };
  refused(DType::F32, DType::F16, std::vector<float>{1, 70000},
          "element 1 is 70000, which is too large for F16");
  refused(DType::F64, DType::F32, std::vector<double>{-1e300},
          "element 0 is -1e+300, which is too large for F32");
  refused(DType::F32, DType::BF16, std::vector<float>{std::numeric_limits<float>::max()},
          "element 0 is 3.40282e+38, which is too large for BF16");
  std::string into(8, '\0');
  for (const auto& [from, to] : {std::pair{DType::I32, DType::F32}, {DType::F32, DType::I32}}) {
    const Status status = convertElements(from, "abcd", to, into);
    EXPECT_EQ(status.error().exitCode(), 4);
    EXPECT_EQ(status.error().message(), "I32 is no floating-point type");
  }
}

TEST(Convert, OfBytesThatComeInAnyOrderAndCutElements) {
  const std::vector<float> values = {1.0f, -2.5f, 0x1.03p0f, 1e-3f, 7.0f};
  const std::span<const char> bytes(reinterpret_cast<const char*>(values.data()),
                                    values.size() * sizeof(float));
  const auto expected = converted<uint16_t>(DType::F32, DType::BF16, values);
  // Pieces end at these bytes.
  for (const std::vector<size_t>& cuts :
       std::vector<std::vector<size_t>>{{20}, {1, 20}, {4, 7, 20}, {1, 2, 3, 4, 18, 19, 20}})
    for (const bool backwards : {false, true}) {
      std::vector<uint16_t> results(values.size());
      const ByteSink sink = convertingSink(
          DType::F32, DType::BF16,
          std::span(reinterpret_cast<char*>(results.data()), results.size() * sizeof(uint16_t)));
      EXPECT_EQ(sink.bytes(), 20);
      for (size_t i = 0; i < cuts.size(); ++i) {
        const size_t piece = backwards ? cuts.size() - 1 - i : i;
        const size_t begin = piece == 0 ? 0 : cuts[piece - 1];
        EXPECT_TRUE(sink.part(static_cast<int64_t>(begin), 20 - static_cast<int64_t>(begin))
                        .write(0, bytes.subspan(begin, cuts[piece] - begin))
                        .ok());
      }
      EXPECT_EQ(results, expected);
    }
  std::string into(4, '\0');
  const ByteSink sink = convertingSink(DType::F32, DType::F16, std::span<char>(into));
  const float large = 1e9f;
  const Status status = sink.write(4, {reinterpret_cast<const char*>(&large), sizeof large});
  EXPECT_EQ(status.error().message(), "element 1 is 1e+09, which is too large for F16");
}

} // namespace
} // namespace titan::checkpoint
