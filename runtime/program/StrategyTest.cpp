#include "runtime/program/Strategy.h"

#include "runtime/program/RecipeSchema.h"

#include <gtest/gtest.h>

#include <set>

namespace titan {
namespace {

TEST(Strategy, EachIsOneRowAnAxis) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const StrategyRow& row : strategyRows()) {
    EXPECT_TRUE(seen.insert({row.strategy, row.axis}).second) << row.strategy << " " << row.axis;
    EXPECT_EQ(findStrategyRow(row.strategy, row.axis), &row);
    EXPECT_TRUE(recipe::isChoice(recipe::findKey("mesh.strategy")->choices, row.strategy));
  }
  for (const char* strategy : {"ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp"})
    for (const char* axis : {"replicate", "shard"})
      EXPECT_NE(findStrategyRow(strategy, axis), nullptr) << strategy << " " << axis;
  EXPECT_EQ(findStrategyRow("fsdp", "tensor"), nullptr);
  EXPECT_EQ(findStrategyRow("tensor", "shard"), nullptr);
}

/// An update works on parts of equal extent: whole slots beside a gradient's part have no meaning,
/// and neither has a part of a parameter beside a whole gradient.
TEST(Strategy, UpdatesWorkOnParts) {
  for (const StrategyRow& row : strategyRows()) {
    EXPECT_EQ(row.gradients, row.slots) << row.strategy << " " << row.axis;
    if (row.parameters == Share::Part)
      EXPECT_EQ(row.gradients, Share::Part) << row.strategy << " " << row.axis;
    if (row.gradients == Share::Part)
      EXPECT_TRUE(row.needsRanks) << row.strategy << " " << row.axis;
  }
}

} // namespace
} // namespace titan
