#include "runtime/program/Microbatches.h"

#include "runtime/program/Collective.h"

#include <gtest/gtest.h>

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
  recipe.mesh.sync = "immediate";
  EXPECT_EQ(ofEachRank(recipe), (Numbers{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
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
