#include "runtime/device/CommandSlots.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

TEST(CommandSlots, StandOneBehindTheOtherAndFollowCounters) {
  Function function;
  Command first, second;
  first.operands = {{{8}, 4}, {{16, {{0, 100}, {1, 10}}}, 4}};
  first.scalars = {{5}, {7, {{1, 2}}}};
  second.operands = {{{24, {{Affine::meshVariable(0), 1000}}}, 4}};
  function.commands = {first, Command(), second};
  const int64_t coordinates[] = {3};
  const CommandSlots slots(function, coordinates, 1 << 20);

  ASSERT_EQ(slots.commands().size(), 3);
  const CommandSlots::Command& placed = slots.commands()[0];
  ASSERT_EQ(placed.operands.size(), 2);
  ASSERT_EQ(placed.scalars.size(), 2);
  EXPECT_EQ(placed.scalars.data(), placed.operands.data() + 2);
  EXPECT_EQ(placed.operands[0], (1 << 20) + 8);
  EXPECT_EQ(placed.operands[1], (1 << 20) + 16);
  EXPECT_EQ(placed.scalars[0], 5);
  ASSERT_EQ(placed.varying.size(), 2);
  for (const Varying& varying : placed.varying)
    varying.update({2, 3});
  EXPECT_EQ(placed.operands[1], (1 << 20) + 16 + 230);
  EXPECT_EQ(placed.scalars[1], 13);
  EXPECT_EQ(placed.operands[0], (1 << 20) + 8);

  EXPECT_TRUE(slots.commands()[1].operands.empty());
  // A rank's coordinate is known when the device is made.
  EXPECT_TRUE(slots.commands()[2].varying.empty());
  EXPECT_EQ(slots.commands()[2].operands[0], (1 << 20) + 3024);
}

} // namespace
} // namespace titan
