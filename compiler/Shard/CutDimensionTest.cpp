#include "compiler/Shard/CutDimension.h"

#include <gtest/gtest.h>

using namespace titan;

namespace {

TEST(CutDimension, IsTheOutermostWhereThatPadsLittle) {
  EXPECT_EQ(cutDimension({16, 12}, 4), (CutDimension{0, 0}));
  // One row of 16 is 1/16: as much as may be.
  EXPECT_EQ(cutDimension({16, 17}, 17), (CutDimension{0, 17}));
  EXPECT_EQ(cutDimension({15, 16}, 16), (CutDimension{1, 0}));
  EXPECT_EQ(cutDimension({33, 2}, 2), (CutDimension{0, 2}));
}

TEST(CutDimension, ElsePadsLeast) {
  EXPECT_EQ(cutDimension({3, 5}, 2), (CutDimension{1, 3}));
  EXPECT_EQ(cutDimension({3, 5, 8}, 4), (CutDimension{2, 0}));
  EXPECT_EQ(cutDimension({1, 3}, 2), (CutDimension{1, 1}));
}

TEST(CutDimension, TheLowestOfEquals) {
  EXPECT_EQ(cutDimension({3, 3}, 2), (CutDimension{0, 3}));
  EXPECT_EQ(cutDimension({3, 2, 2}, 2), (CutDimension{1, 0}));
}

TEST(CutDimension, UnderTreeTheOutermostWhateverItPads) {
  EXPECT_EQ(cutDimension({3, 5}, 2, /*isTree=*/true), (CutDimension{0, 5}));
  EXPECT_EQ(cutDimension({1, 4}, 4, /*isTree=*/true), (CutDimension{0, 12}));
  EXPECT_EQ(cutDimension({1, 3}, 4, /*isTree=*/true), std::nullopt);
}

TEST(CutDimension, AVectorHasOnlyOne) {
  EXPECT_EQ(cutDimension({10}, 4), (CutDimension{0, 2}));
  EXPECT_EQ(cutDimension({7}, 8), std::nullopt);
  EXPECT_EQ(cutDimension({8}, 8), (CutDimension{0, 0}));
  EXPECT_EQ(cutDimension({9}, 8), (CutDimension{0, 7}));
}

TEST(CutDimension, FewerElementsThanRanksStayWhole) {
  EXPECT_EQ(cutDimension({}, 2), std::nullopt);
  EXPECT_EQ(cutDimension({1}, 2), std::nullopt);
  EXPECT_EQ(cutDimension({1, 3}, 4), std::nullopt);
  // Four elements on four ranks: two of them have padding alone.
  EXPECT_EQ(cutDimension({2, 2}, 4), (CutDimension{0, 4}));
}

} // namespace
