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
                              0,
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
