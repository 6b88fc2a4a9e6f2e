#include "runtime/program/DType.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace titan {
namespace {

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(DType::Bool); ++i) {
    const auto dtype = static_cast<DType>(i);
    const auto parsed = parseDType(name(dtype));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, dtype);
  }
  EXPECT_EQ(name(DType::Bool), "BOOL");
  EXPECT_EQ(byteSize(DType::BF16), 2);
  EXPECT_FALSE(parseDType("F8").ok());
}

TEST(DType, Shapes) {
  EXPECT_EQ(elementCount(Shape{}), 1);
  EXPECT_EQ(elementCount(Shape{128, 784}), 128 * 784);
  EXPECT_EQ(toString(Shape{128, 784}), "[128, 784]");
  EXPECT_EQ(toString(Shape{}), "[]");
}

TEST(DType, BFloat16RoundsToNearestEven) {
  EXPECT_EQ(toBFloat16(1.0f), 0x3f80);
  EXPECT_EQ(toBFloat16(1.0f + 0x1p-8f), 0x3f80);            // tie: to even, down
  EXPECT_EQ(toBFloat16(1.0f + 3 * 0x1p-8f), 0x3f82);        // tie: to even, up
  EXPECT_EQ(toBFloat16(1.0f + 0x1p-8f + 0x1p-20f), 0x3f81); // above the tie
  EXPECT_EQ(toBFloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(fromBFloat16(toBFloat16(NAN))));
  for (uint32_t bits = 0; bits < 0x10000; ++bits)
    if (const float value = fromBFloat16(static_cast<uint16_t>(bits)); !std::isnan(value))
      EXPECT_EQ(toBFloat16(value), bits);
}

TEST(DType, Float16RoundTripsEveryValue) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = fromFloat16(static_cast<uint16_t>(bits));
    if (!std::isnan(value))
      EXPECT_EQ(toFloat16(value), bits) << value;
  }
  EXPECT_TRUE(std::isnan(fromFloat16(toFloat16(NAN))));
}

TEST(DType, Float16RoundsToNearestEvenBetweenNeighbours) {
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = fromFloat16(bits), high = fromFloat16(bits + 1);
    const float middle = low + (high - low) / 2; // exact in f32
    const uint16_t even = bits % 2 ? bits + 1 : bits;
    EXPECT_EQ(toFloat16(middle), even);
    EXPECT_EQ(toFloat16(std::nextafter(middle, high)), bits + 1);
    EXPECT_EQ(toFloat16(std::nextafter(middle, low)), bits);
  }
  EXPECT_EQ(toFloat16(65519.0f), 0x7bff);
  EXPECT_EQ(toFloat16(65520.0f), 0x7c00); // half way beyond the largest: infinity
  EXPECT_EQ(toFloat16(-1e30f), 0xfc00);
}

} // namespace
} // namespace titan
