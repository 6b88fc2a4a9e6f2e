#include "runtime/program/Microbatches.h"

#include "runtime/program/Collective.h"

#include <gtest/gtest.h>

#include <tuple>

namespace titan {
namespace {

Recipe recipeOf(std::vector<MeshAxis> axes, int64_t globalMicrobatches) {
  Recipe recipe;
  recipe.mesh.axes = std::move(axes);
  recipe.batch.micro = 3;
  recipe.batch.global = 3 * globalMicrobatches;
  return recipe;
}

/// The microbatches of each rank, in its order.
std::vector<std::vector<int64_t>> ofEachRank(const Recipe& recipe) {
  std::vector<std::vector<int64_t>> numbers;
  for (int64_t rank = 0; rank < rankCount(recipe.mesh.axes); ++rank) {
    const MicrobatchOrder order = microbatchOrder(recipe, coordinatesOf(rank, recipe.mesh.axes));
    std::vector<int64_t>& mine = numbers.emplace_back();
    for (int64_t i = 0; i < recipe.localMicrobatches(); ++i)
      mine.push_back(order.at(i));
  }
  return numbers;
}

using Numbers = std::vector<std::vector<int64_t>>;

TEST(Microbatches, OneRankRunsAllInOrder) {
  EXPECT_EQ(ofEachRank(recipeOf({{"replicate", 1}, {"shard", 1}, {"tensor", 1}}, 4)),
            (Numbers{{0, 1, 2, 3}}));
  EXPECT_EQ(ofEachRank(recipeOf({}, 2)), (Numbers{{0, 1}}));
}

TEST(Microbatches, DataRanksTakeTurns) {
  EXPECT_EQ(ofEachRank(recipeOf({{"replicate", 2}, {"shard", 3}}, 12)),
            (Numbers{{0, 6}, {1, 7}, {2, 8}, {3, 9}, {4, 10}, {5, 11}}));
  // As many microbatches as ranks: the stride is not seen, and still that of the rule.
  const Recipe one = recipeOf({{"replicate", 2}, {"shard", 1}, {"tensor", 1}}, 2);
  const int64_t second[] = {1, 0, 0};
  EXPECT_EQ(microbatchOrder(one, second), (MicrobatchOrder{1, 2}));
}

TEST(Microbatches, RanksOfTheTensorAxisShareTheirs) {
  EXPECT_EQ(ofEachRank(recipeOf({{"shard", 2}, {"tensor", 2}}, 4)),
            (Numbers{{0, 2}, {0, 2}, {1, 3}, {1, 3}}));
}

TEST(Microbatches, ATreeOfDeferredSumsTakesThemInARow) {
  Recipe recipe = recipeOf({{"replicate", 2}, {"shard", 2}}, 8);
  recipe.mesh.reduce = "tree";
  EXPECT_EQ(ofEachRank(recipe), (Numbers{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  recipe.mesh.sync.all = "immediate";
  EXPECT_EQ(ofEachRank(recipe), (Numbers{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  // By axis: replicate's ranks have halves, in which shard's take turns.
  recipe.mesh.sync = {"", {{"shard", "immediate"}}};
  EXPECT_EQ(ofEachRank(recipe), (Numbers{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
}

/// What is summed more often stands further inside, whatever the mesh's order.
TEST(Microbatches, ImmediateAxesAreTheLastDigits) {
  Recipe recipe = recipeOf({{"shard", 2}, {"replicate", 3}}, 6);
  EXPECT_EQ(ofEachRank(recipe), (Numbers{{0}, {1}, {2}, {3}, {4}, {5}}));
  recipe.mesh.sync = {"", {{"shard", "immediate"}}};
  EXPECT_EQ(ofEachRank(recipe), (Numbers{{0}, {2}, {4}, {1}, {3}, {5}}));
}

/// {count, local, axes} of each loop.
using Counts = std::vector<std::tuple<int64_t, int64_t, std::vector<uint8_t>>>;
Counts countsOf(const Recipe& recipe) {
  Counts counts;
  for (const MicrobatchLoop& loop : microbatchLoops(recipe))
    counts.emplace_back(loop.count, loop.local, loop.axes);
  return counts;
}

TEST(MicrobatchLoops, EachIsDividedByItsAxes) {
  Recipe recipe = recipeOf({{"replicate", 2}, {"shard", 3}, {"tensor", 1}}, 24);
  EXPECT_EQ(countsOf(recipe), (Counts{{24, 4, {0, 1}}}));
  recipe.mesh.syncEvery = 2;
  EXPECT_EQ(countsOf(recipe), (Counts{{2, 2, {}}, {12, 2, {0, 1}}}));
  recipe.mesh.syncEvery = 4;
  EXPECT_EQ(countsOf(recipe), (Counts{{24, 4, {0, 1}}}));
  recipe.mesh.syncEvery = 0;
  recipe.mesh.sync.all = "immediate";
  EXPECT_EQ(countsOf(recipe), (Counts{{4, 4, {}}, {6, 1, {0, 1}}}));
  recipe.mesh.sync = {"", {{"shard", "immediate"}}};
  EXPECT_EQ(countsOf(recipe), (Counts{{8, 4, {0}}, {3, 1, {1}}}));
  // With one microbatch a rank each sum is the step's.
  recipe.batch.global = 3 * 6;
  EXPECT_EQ(countsOf(recipe), (Counts{{6, 1, {0, 1}}}));
}

/// Levels of deferred axes, of a rank's own microbatches, of immediate axes.
TEST(MicrobatchLoops, ATreeHasALoopForEachLevelOfARank) {
  Recipe recipe = recipeOf({{"replicate", 2}, {"shard", 4}, {"tensor", 1}}, 32);
  recipe.mesh.reduce = "tree";
  EXPECT_EQ(countsOf(recipe), (Counts{{8, 1, {0, 1}}, {2, 2, {}}, {2, 2, {}}}));
  recipe.mesh.sync.all = "immediate";
  EXPECT_EQ(countsOf(recipe), (Counts{{2, 2, {}}, {2, 2, {}}, {8, 1, {0, 1}}}));
  recipe.mesh.sync = {"", {{"shard", "immediate"}}};
  EXPECT_EQ(countsOf(recipe), (Counts{{2, 1, {0}}, {2, 2, {}}, {2, 2, {}}, {4, 1, {1}}}));
  recipe.batch.global = 3 * 8;
  EXPECT_EQ(countsOf(recipe), (Counts{{8, 1, {0, 1}}}));
  recipe = recipeOf({{"shard", 1}}, 4);
  recipe.mesh.reduce = "tree";
  EXPECT_EQ(countsOf(recipe), (Counts{{2, 2, {}}, {2, 2, {}}}));
}

TEST(MicrobatchLoops, OneRankHasOneThatNothingDivides) {
  Recipe recipe = recipeOf({{"shard", 1}, {"replicate", 1}}, 8);
  recipe.mesh.syncEvery = 2;
  for (const char* sync : {"auto", "deferred", "immediate"}) {
    recipe.mesh.sync.all = sync;
    EXPECT_EQ(countsOf(recipe), (Counts{{8, 8, {}}})) << sync;
  }
}

/// Of all ranks and iterations: the indices of the loops are those of the microbatch.
TEST(MicrobatchLoops, IndicesGiveTheNumber) {
  std::vector<Recipe> recipes(6, recipeOf({{"replicate", 2}, {"shard", 3}}, 24));
  recipes[1].mesh.sync.all = "immediate";
  recipes[2].mesh.sync = {"", {{"shard", "immediate"}}};
  recipes[3].mesh.syncEvery = 2;
  recipes[4].mesh.syncEvery = 1;
  recipes[5] = recipeOf({{"shard", 4}, {"replicate", 2}}, 24);
  recipes[5].mesh.sync = {"", {{"shard", "immediate"}}};
  for (const char* sync : {"deferred", "immediate", ""}) {
    Recipe& tree = recipes.emplace_back(recipeOf({{"replicate", 2}, {"shard", 4}}, 32));
    tree.mesh.reduce = "tree";
    tree.mesh.sync = {sync, {}};
  }
  recipes.back().mesh.sync.byAxis = {{"shard", "immediate"}};
  for (const Recipe& recipe : recipes) {
    const std::vector<MicrobatchLoop> loops = microbatchLoops(recipe);
    for (int64_t rank = 0; rank < rankCount(recipe.mesh.axes); ++rank) {
      const std::vector<int64_t> coordinates = coordinatesOf(rank, recipe.mesh.axes);
      const MicrobatchOrder order = microbatchOrder(recipe, coordinates);
      for (int64_t i = 0; i < recipe.localMicrobatches(); ++i) {
        int64_t number = 0, left = i, inside = recipe.localMicrobatches();
        for (const MicrobatchLoop& loop : loops) {
          inside /= loop.local;
          const Affine index = onRank(loop.index, coordinates);
          const int64_t own = index.base + offsetOf(index.terms, RepeatCounters{left / inside});
          ASSERT_LT(own, loop.count);
          number = number * loop.count + own;
          left %= inside;
        }
        EXPECT_EQ(number, order.at(i)) << "rank " << rank << ", iteration " << i;
      }
    }
  }
}

/// What the compiler puts into the program.
TEST(Microbatches, NumberIsAffineInIterationAndCoordinates) {
  EXPECT_EQ(microbatchNumber(recipeOf({{"replicate", 2}, {"shard", 3}, {"tensor", 1}}, 12)),
            (Affine{0, {{0, 6}, {8, 3}, {9, 1}}}));
  EXPECT_EQ(microbatchNumber(recipeOf({{"replicate", 1}, {"shard", 1}, {"tensor", 1}}, 4)),
            Affine::counter(0));
}

} // namespace
} // namespace titan
