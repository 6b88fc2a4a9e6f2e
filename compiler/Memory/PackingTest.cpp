#include "compiler/Memory/Packing.h"

#include <gtest/gtest.h>

#include <random>

namespace titan::memory {
namespace {

void expectDisjoint(const std::vector<Interval>& intervals, const Packing& packing) {
  for (size_t i = 0; i < intervals.size(); ++i) {
    EXPECT_EQ(packing.offsets[i] % 64, 0);
    EXPECT_LE(packing.offsets[i] + intervals[i].bytes, packing.bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool sameTime =
          intervals[i].first <= intervals[j].last && intervals[j].first <= intervals[i].last;
      const bool sameBytes = packing.offsets[i] < packing.offsets[j] + intervals[j].bytes &&
                             packing.offsets[j] < packing.offsets[i] + intervals[i].bytes;
      EXPECT_FALSE(sameTime && sameBytes) << i << " and " << j;
    }
  }
}

TEST(Packing, NothingNeedsNothing) {
  EXPECT_EQ(pack({}, 64).bytes, 0);
  EXPECT_EQ(maxLive({}, 64), 0);
}

TEST(Packing, SharesBytesAcrossTime) {
  std::vector<Interval> intervals = {{100, 0, 1}, {100, 2, 3}, {100, 1, 2}};
  Packing packing = pack(intervals, 64);
  expectDisjoint(intervals, packing);
  EXPECT_EQ(packing.bytes, 256);
  EXPECT_EQ(maxLive(intervals, 64), 256);
}

TEST(Packing, LivenessIncludesBothEnds) {
  // Written by the command that reads the other: both are live there.
  std::vector<Interval> intervals = {{64, 0, 1}, {64, 1, 2}};
  EXPECT_EQ(pack(intervals, 64).bytes, 128);
}

// A training step: activations are made in order and die in reverse, gradients are short-lived,
// accumulators live throughout.
TEST(Packing, StaysNearTheBoundOnTrainingSteps) {
  std::mt19937 random(1);
  for (uint32_t layers : {3u, 12u, 40u}) {
    std::vector<Interval> intervals;
    for (uint32_t i = 0; i < layers; ++i) {
      const uint32_t backward = 2 * layers - i;
      const int64_t size = 4096 * (1 + random() % 16);
      intervals.push_back({size, i, backward});
      intervals.push_back({size, backward - 1, backward});
      intervals.push_back({size / 4 + 4, i, i + 1});
      intervals.push_back({4096 * 8, 0, 2 * layers + 1});
    }
    Packing packing = pack(intervals, 64);
    expectDisjoint(intervals, packing);
    EXPECT_LE(packing.bytes, 1.02 * maxLive(intervals, 64)) << layers;
  }
}

TEST(Packing, RandomLifetimesNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<Interval> intervals;
    for (int i = 0; i < 100; ++i) {
      const uint32_t first = random() % 100;
      intervals.push_back({static_cast<int64_t>(1 + random() % 10000), first,
                           first + static_cast<uint32_t>(random() % 20)});
    }
    Packing packing = pack(intervals, 64);
    expectDisjoint(intervals, packing);
    EXPECT_GE(packing.bytes, maxLive(intervals, 64));
  }
}

} // namespace
/// Lifetimes like those of a small model: nested activations, gradients that stay, short
/// temporaries, all of similar but random sizes, so that gaps seldom fit: harder than models are.
TEST(Packing, SimilarSizesArePackedTightly) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 5; ++trial) {
    std::vector<Interval> intervals;
    constexpr uint32_t half = 60, end = 2 * half;
    for (uint32_t i = 0; i < half; ++i) {
      auto bytes = [&] { return 64 * static_cast<int64_t>(1 + random() % 40); };
      auto later = [&](uint32_t first, uint32_t by) {
        return std::min(end, first + by + static_cast<uint32_t>(random() % 4));
      };
      intervals.push_back({bytes(), i, end - i});                   // an activation
      intervals.push_back({bytes(), half + i, end});                // a gradient
      intervals.push_back({bytes(), i, later(i, 1)});               // on the way there
      intervals.push_back({bytes(), half + i, later(half + i, 0)}); // and back
    }
    EXPECT_LE(pack(intervals, 64).bytes, 1.06 * maxLive(intervals, 64)) << "trial " << trial;
  }
}

} // namespace titan::memory
