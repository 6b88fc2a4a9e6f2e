#include "runtime/program/Ledger.h"

#include "runtime/program/testing/ExampleProgram.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

TEST(Ledger, OneRowACollective) {
  const std::vector<LedgerRow> rows = ledgerOf(testing::exampleProgram());
  ASSERT_EQ(rows.size(), 1u);
  // Six ranks: 408 bytes of source; a ring moves twice 5/6 of them to each.
  const LedgerRow expected = {"step",
                              Phase::Update,
                              CollectiveKind::AllReduce,
                              {"replicate", "shard"},
                              "F32, I64",
                              "fc, count",
                              {0},
                              1,
                              408,
                              680};
  EXPECT_EQ(rows[0], expected);
}

TEST(Ledger, RepeatsCount) {
  Program program = testing::exampleProgram();
  std::vector<Command>& commands = program.functions[0].commands;
  const Command open = commands[1], close = commands[3];
  commands.insert(commands.begin() + 4, {open, open});
  commands.insert(commands.end(), {close, close});
  ASSERT_TRUE(verify(program).ok());
  const std::vector<LedgerRow> rows = ledgerOf(program);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].count, 16);
  EXPECT_EQ(rows[0].payload, 16 * 408);
  EXPECT_EQ(rows[0].wire, 16 * 680);
}

TEST(Ledger, OneAtTwoPlacesIsOneRow) {
  Program program = testing::exampleProgram();
  std::vector<Command>& commands = program.functions[0].commands;
  // Behind a repeat of 4 like the one in it.
  const Command open = commands[1], close = commands[3];
  const Command start = commands[4], wait = commands[5];
  commands.insert(commands.begin() + 4, {open, start, wait, close});
  for (size_t i : {8, 9})
    commands[i].target = 1;
  program.collectives.push_back(program.collectives[0]);
  ASSERT_TRUE(verify(program).ok()) << verify(program).error().message();
  std::vector<LedgerRow> rows = ledgerOf(program);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].collectives, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(rows[0].count, 5);
  EXPECT_EQ(rows[0].payload, 5 * 408);
  EXPECT_EQ(rows[0].wire, 5 * 680);
  // Of other tensors it is another.
  program.collectives[1].label = "other";
  rows = ledgerOf(program);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].count, 4);
  EXPECT_EQ(rows[1].count, 1);
}

TEST(Ledger, PartsAreTheSourcesOfAGather) {
  Program program = testing::exampleProgram();
  program.collectives[0] = {
      CollectiveKind::AllGather, {}, {1}, {{DType::F32, 1, 300}, {DType::F32, 2, 3}}, "fc"};
  const std::vector<LedgerRow> rows = ledgerOf(program);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].axes, std::vector<std::string>{"shard"});
  EXPECT_EQ(rows[0].dtype, "F32");
  EXPECT_EQ(rows[0].payload, 408) << "a third of the whole";
  EXPECT_EQ(rows[0].wire, 2 * 408) << "the other two thirds";
}

} // namespace
} // namespace titan
