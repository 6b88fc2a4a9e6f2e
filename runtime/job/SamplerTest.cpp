#include "runtime/job/Sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace titan {
namespace {

std::map<int64_t, int> counts(SamplerOptions options, std::vector<float> logits, int draws) {
  Sampler sampler(options);
  std::map<int64_t, int> seen;
  for (int i = 0; i < draws; ++i)
    ++seen[sampler.draw(logits, static_cast<uint64_t>(i)).take()];
  return seen;
}

TEST(SamplerTest, ZeroTemperatureTakesTheFirstOfTheMostLikely) {
  EXPECT_EQ(counts({.temperature = 0}, {1, 3, 3, 2}, 10), (std::map<int64_t, int>{{1, 10}}));
}

TEST(SamplerTest, FrequenciesAreSoftmaxOfTheLogits) {
  constexpr int draws = 20000;
  const std::vector<float> logits = {0, 1, -1};
  for (double temperature : {1.0, 0.5}) {
    const auto seen = counts({.temperature = temperature, .seed = 7}, logits, draws);
    double total = 0;
    for (float logit : logits)
      total += std::exp(logit / temperature);
    for (int64_t token = 0; token < 3; ++token) {
      const double p = std::exp(logits[token] / temperature) / total;
      // Five standard deviations; the draws are fixed, so this passes always or never.
      EXPECT_NEAR(seen.at(token), p * draws, 5 * std::sqrt(draws * p * (1 - p)));
    }
  }
}

TEST(SamplerTest, TopKKeepsTheLowerOfEqualTokens) {
  const auto seen = counts({.topK = 2}, {0, 2, 0, 0}, 500);
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_TRUE(seen.contains(0) && seen.contains(1));
  EXPECT_EQ(counts({.topK = 9}, {0, 0}, 500).size(), 2u);
}

TEST(SamplerTest, ADrawIsAFunctionOfSeedAndIndex) {
  const std::vector<float> logits(50, 0.0f);
  Sampler a({.seed = 3}), b({.seed = 3}), other({.seed = 4});
  std::vector<int64_t> forward, backward, others;
  for (uint64_t i = 0; i < 20; ++i) {
    forward.push_back(a.draw(logits, i).take());
    backward.insert(backward.begin(), b.draw(logits, 19 - i).take());
    others.push_back(other.draw(logits, i).take());
  }
  EXPECT_EQ(forward, backward);
  EXPECT_NE(forward, others);
}

TEST(SamplerTest, LargeLogitsDoNotOverflow) {
  EXPECT_EQ(counts({}, {3e38f, -3e38f}, 10), (std::map<int64_t, int>{{0, 10}}));
}

TEST(SamplerTest, MinusInfinityIsNeverDrawn) {
  EXPECT_EQ(counts({}, {-INFINITY, 0}, 100), (std::map<int64_t, int>{{1, 100}}));
}

TEST(SamplerTest, UselessLogitsAreAnError) {
  for (const std::vector<float>& bad :
       {std::vector<float>{0, std::nanf("")}, {INFINITY, 0}, {-INFINITY, -INFINITY}}) {
    auto token = Sampler({}).draw(bad, 0);
    ASSERT_FALSE(token.ok());
    EXPECT_EQ(token.error().code(), ErrorCode::RunFailed);
  }
}

} // namespace
} // namespace titan
