#include "runtime/job/Stragglers.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

/// Steps of `seconds`, in each of which rank r computes for compute[r].
class Steps {
public:
  explicit Steps(size_t ranks) : stragglers_(static_cast<int64_t>(ranks)), waited_(ranks, 100) {
    stragglers_.begin(waited_);
  }
  Stragglers::Step one(double seconds, const std::vector<double>& compute) {
    for (size_t rank = 0; rank < compute.size(); ++rank)
      waited_[rank] += seconds - compute[rank];
    return stragglers_.end(seconds, waited_);
  }
  /// A window, and what is said of it.
  std::string window(double seconds, const std::vector<double>& compute) {
    std::string said;
    for (int64_t step = 0; step < Stragglers::window; ++step) {
      one(seconds, compute);
      said += stragglers_.verdict().value_or("");
    }
    return said;
  }
  void waitBetweenSteps(size_t rank, double seconds) {
    waited_[rank] += seconds;
    stragglers_.begin(waited_);
  }

private:
  Stragglers stragglers_;
  std::vector<double> waited_;
};

TEST(Stragglers, TheRankThatWaitsLeastIsSlowest) {
  Steps steps(3);
  const Stragglers::Step step = steps.one(1, {0.5, 0.875, 0.75});
  EXPECT_DOUBLE_EQ(step.waitSeconds, 0.5);
  EXPECT_EQ(step.slowestRank, 1);
  EXPECT_EQ(steps.one(1, {0.5, 0.5, 0.5}).slowestRank, 0);
}

TEST(Stragglers, WaitsBetweenStepsDoNotCount) {
  Steps steps(2);
  steps.one(1, {0.75, 0.5});
  steps.waitBetweenSteps(1, 30); // for the save that rank 0 makes
  const Stragglers::Step step = steps.one(1, {0.75, 0.5});
  EXPECT_DOUBLE_EQ(step.waitSeconds, 0.5);
  EXPECT_EQ(step.slowestRank, 0);
}

TEST(Stragglers, ASlowRankIsToldOnceUntilItKeepsUp) {
  Steps steps(3);
  EXPECT_EQ(steps.window(1, {0.5, 0.5, 0.625}), ""); // 1.25 x
  const std::string told = steps.window(1, {0.5, 0.5, 0.75});
  EXPECT_EQ(told, "rank 2 computes 1.50 x as long as the median rank over 20 steps (0.75 s of 0.5 "
                  "s a step): the others wait for it, see what else its CPUs do");
  EXPECT_EQ(steps.window(1, {0.5, 0.5, 0.75}), "");
  EXPECT_EQ(steps.window(1, {0.5, 0.5, 0.5}), "");
  EXPECT_EQ(steps.window(1, {0.5, 0.5, 0.75}), told);
  EXPECT_NE(steps.window(1, {0.875, 0.5, 0.5}), "");
}

TEST(Stragglers, ARankThatOnlyWaitedIsNoMeasure) {
  EXPECT_EQ(Steps(2).window(1, {0.5, 0}), "");
  EXPECT_EQ(Steps(2).window(1, {0.5, -0.25}), "");
}

TEST(Stragglers, OfTwoRanksTheFasterIsTheMeasure) {
  Steps steps(2);
  EXPECT_NE(steps.window(1, {0.5, 0.75}), "");
}

} // namespace
} // namespace titan
