#include "runtime/program/Random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace titan {
namespace {

TEST(Random, PhiloxKnownAnswers) { // Random123's kat_vectors, philox4x32 with 7 rounds
  EXPECT_EQ(philox4x32_7(0, 0, 0), (PhiloxBlock{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
  EXPECT_EQ(philox4x32_7(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}),
            (PhiloxBlock{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}));
  EXPECT_EQ(philox4x32_7(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (PhiloxBlock{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}));
}

TEST(Random, KeysAreStable) {
  // They are in every checkpointed run's future: a change here changes what a resumed run draws.
  EXPECT_EQ(randomKey(0, 0), 0xd0a66a65c7528968u);
  EXPECT_EQ(randomStream("layers.0.dropout", 1), 0xedd9b3a684f8b4d0u);
  std::set<uint64_t> keys;
  for (uint64_t seed = 0; seed < 10; ++seed)
    for (uint64_t ordinal = 0; ordinal < 10; ++ordinal)
      keys.insert(randomKey(seed, randomStream("layers.0.dropout", ordinal)));
  EXPECT_EQ(keys.size(), 100u);
  EXPECT_NE(randomStream("a", 11), randomStream("a1", 1));
}

TEST(Random, HalvesAndWordsFollowTheLayout) {
  const uint64_t key = randomKey(3, 5);
  const PhiloxBlock block = philox4x32_7(key, 2, 9);
  for (uint64_t half = 0; half < 8; ++half) {
    const uint32_t bits = block[half / 2] >> 16 * (half % 2) & 0xffff;
    EXPECT_FALSE(dropoutKeeps(key, 9, 16 + half, bits));
    EXPECT_TRUE(dropoutKeeps(key, 9, 16 + half, bits + 1));
  }
  for (uint64_t word = 0; word < 4; ++word)
    EXPECT_EQ(uniformDraw(key, 9, 8 + word), static_cast<float>(block[word] >> 8) / 16777216.0f);
}

TEST(Random, KeepThresholdRounds) {
  EXPECT_EQ(keepThreshold(0), 65536u);
  EXPECT_EQ(keepThreshold(1), 0u);
  EXPECT_EQ(keepThreshold(0.1), 58982u); // 58982.4
  EXPECT_EQ(keepThreshold(0.5), 32768u);
}

TEST(Random, DropoutRate) {
  constexpr int count = 1 << 20;
  for (double p : {0.1, 0.5, 0.9}) {
    const uint32_t threshold = keepThreshold(p);
    int kept = 0;
    for (int i = 0; i < count; ++i)
      kept += dropoutKeeps(randomKey(1, 2), 7, static_cast<uint64_t>(i), threshold);
    EXPECT_NEAR(kept / double{count}, 1 - p, 5 * std::sqrt(p * (1 - p) / count)) << p;
  }
}

TEST(Random, DrawsInSequenceAreThoseOfTheirElements) {
  const uint64_t key = randomKey(3, 4), step = 9;
  for (uint64_t first = 0; first < 6; ++first)
    for (size_t count = 0; count < 11; ++count) {
      std::vector<float> uniform(count), normal(count);
      uniformDraws(key, step, first, uniform);
      normalDraws(key, step, first, normal);
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(uniform[i], uniformDraw(key, step, first + i)) << first << ", " << i;
        EXPECT_EQ(normal[i], normalDraw(key, step, first + i)) << first << ", " << i;
      }
    }
}

TEST(Random, NormalMoments) {
  constexpr int count = 1 << 18;
  double sum = 0, squares = 0, cubes = 0, fourths = 0, neighbours = 0, previous = 0;
  for (int i = 0; i < count; ++i) {
    const double x = normalDraw(randomKey(0, 1), 0, static_cast<uint64_t>(i));
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    cubes += x * x * x;
    fourths += x * x * x * x;
    neighbours += x * previous;
    previous = x;
  }
  const double sigma = 1 / std::sqrt(count);
  EXPECT_NEAR(sum / count, 0, 5 * sigma);
  EXPECT_NEAR(squares / count, 1, 5 * std::sqrt(2) * sigma);
  EXPECT_NEAR(cubes / count, 0, 5 * std::sqrt(15) * sigma);
  EXPECT_NEAR(fourths / count, 3, 5 * std::sqrt(96) * sigma);
  EXPECT_NEAR(neighbours / count, 0, 5 * sigma);
}

TEST(Random, UniformMoments) {
  constexpr int count = 1 << 18;
  double sum = 0, squares = 0;
  for (int i = 0; i < count; ++i) {
    const double x = uniformDraw(randomKey(0, 1), 3, static_cast<uint64_t>(i));
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / count, 0.5, 5 * std::sqrt(1.0 / 12 / count));
  EXPECT_NEAR(squares / count, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / count));
}

} // namespace
} // namespace titan
