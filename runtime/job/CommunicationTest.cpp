#include "runtime/job/Communication.h"

#include "runtime/job/ProfileReport.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

/// Two ranks that sum 10 f32 in each of three repeats, and a loss and a count behind them.
Program program() {
  Program program;
  program.mesh = {{"replicate", 2}, {"shard", 1}};
  program.collectives = {
      {CollectiveKind::AllReduce, SumOrder::Rank, {0}, {{DType::F32, 1, 10}}, "fc.weight"},
      {CollectiveKind::AllReduce,
       SumOrder::Rank,
       {0},
       {{DType::F32, 1, 1}, {DType::I64, 1, 1}},
       "loss, count"}};
  Function step;
  step.name = "step";
  auto add = [&](CommandKind kind, Phase phase = Phase::Backward, uint32_t target = 0) {
    Command& command = step.commands.emplace_back();
    command.kind = kind, command.phase = phase, command.target = target;
  };
  add(CommandKind::Repeat);
  step.commands.back().launch.units = 3;
  add(CommandKind::CollectiveStart);
  add(CommandKind::CollectiveWait);
  add(CommandKind::EndRepeat);
  add(CommandKind::CollectiveStart, Phase::Update, 1);
  add(CommandKind::CollectiveWait, Phase::Update, 1);
  program.functions.push_back(step);
  return program;
}

TEST(CommunicationTest, PlanListsOneRowACollective) {
  const auto rows = ledgerJson(ledgerOf(program()));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].dump(),
            R"({"function":"step","phase":"backward","kind":"all_reduce","axes":["replicate"],)"
            R"("dtype":"F32","source":"fc.weight","count":3,"payload":120,"wire":120})");
  EXPECT_EQ(rows[1].dump(),
            R"({"function":"step","phase":"update","kind":"all_reduce","axes":["replicate"],)"
            R"("dtype":"F32, I64","source":"loss, count","count":1,"payload":12,"wire":12})");
}

TEST(CommunicationTest, TheTextNamesTheMesh) {
  const std::string text = ledgerText(ledgerOf(program()), program().mesh);
  EXPECT_TRUE(text.starts_with("communication of one of 2 ranks (replicate 2), bytes\n")) << text;
  EXPECT_NE(
      text.find("  step        backward  all_reduce      replicate           F32              "
                "3             120             120  fc.weight\n"),
      std::string::npos)
      << text;
}

TEST(CommunicationTest, OneRankHasNoCommunication) {
  const std::vector<MeshAxis> mesh = {{"replicate", 1}, {"shard", 1}};
  EXPECT_EQ(ledgerText({}, mesh), "communication: none, 1 rank\n");
  EXPECT_EQ(ledgerText({}, program().mesh), "communication: none, 2 ranks (replicate 2)\n");
  EXPECT_EQ(ledgerJson({}).dump(), "[]");
}

TEST(CommunicationTest, ProfileCountsPerStep) {
  Program p = program();
  Measurement m;
  m.steps = 2, m.plainSeconds = m.profiledSeconds = 1;
  m.traffic = trafficBetween({{3, 120, 120}, {1, 12, 12}}, {{9, 360, 360}, {3, 36, 37}});
  m.movedByAll = {480, 50};
  m.limits.copies = {{"memory", INT64_MAX, 10}};
  const auto rows = profileJson(m, p)["communication"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].dump(),
            R"({"function":"step","phase":"backward","kind":"all_reduce","axes":["replicate"],)"
            R"("dtype":"F32","source":"fc.weight","count":3,"payload":120,"moved":120,)"
            R"("moved_all":240})");
  EXPECT_EQ(rows[1]["moved"], 12.5) << "what differs from step to step is no whole number";
  const std::string text = profileText(m, p);
  EXPECT_NE(text.find("communication of one of 2 ranks (replicate 2), counted, bytes a step\n"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find("  step        backward  all_reduce      replicate           F32              "
                "3             120             120  fc.weight\n"),
      std::string::npos)
      << text;
  p.collectives.clear();
  EXPECT_FALSE(profileJson(m, p).contains("communication"));
  EXPECT_EQ(profileText(m, p).find("communication"), std::string::npos);
}

} // namespace
} // namespace titan
