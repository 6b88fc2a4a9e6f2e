#include "runtime/program/Affine.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

TEST(Affine, SumsAndProductsHaveOneForm) {
  const Affine a{5, {{0, 2}, {8, 7}}}, b{1, {{0, -2}, {3, 4}}};
  EXPECT_EQ(a + b, (Affine{6, {{3, 4}, {8, 7}}}));
  EXPECT_EQ(b + a, a + b);
  EXPECT_EQ(a * -3, (Affine{-15, {{0, -6}, {8, -21}}}));
  EXPECT_EQ(a * 0, Affine{});
  EXPECT_EQ(Affine::counter(2, 16), (Affine{0, {{2, 16}}}));
}

TEST(Affine, ValueAtCounters) {
  const Affine value{5, {{0, 100}, {7, 1}}};
  RepeatCounters counters{};
  counters[0] = 2, counters[1] = 1000, counters[7] = 3;
  EXPECT_EQ(value.base + offsetOf(value.terms, counters), 208);
}

TEST(Affine, OnARankOnlyCountersAreLeft) {
  const Affine value{5, {{1, 100}, {Affine::meshVariable(0), 10}, {Affine::meshVariable(1), 7}}};
  const int64_t coordinates[] = {2, 3};
  EXPECT_EQ(onRank(value, coordinates), (Affine{46, {{1, 100}}}));
}

TEST(Affine, BoundsOverCountersAndCoordinates) {
  const Affine value{100, {{0, -10}, {Affine::meshVariable(1), 7}}};
  const int64_t trips[] = {4}, ranks[] = {1, 3};
  const std::optional<Bounds> bounds = boundsOf(value, trips, ranks);
  ASSERT_TRUE(bounds);
  EXPECT_EQ(bounds->low, 70);
  EXPECT_EQ(bounds->high, 114);
  EXPECT_FALSE(boundsOf(value, {}, ranks)) << "no such repeat";
  EXPECT_FALSE(boundsOf(value, trips, std::span(ranks, 1))) << "no such axis";
  EXPECT_FALSE(boundsOf({1, {{0, INT64_MAX}}}, trips, ranks)) << "overflow";
}

} // namespace
} // namespace titan
