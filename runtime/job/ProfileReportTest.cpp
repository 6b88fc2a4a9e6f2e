#include "runtime/job/ProfileReport.h"

#include "runtime/job/KernelLabel.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

ProfileRow row(std::string label, CommandKind kind = CommandKind::Kernel,
               Phase phase = Phase::Forward) {
  ProfileRow row;
  row.label = std::move(label), row.kind = kind, row.phase = phase;
  row.calls = 2, row.seconds = 2, row.flops = 200, row.bytes = 20;
  return row;
}

MachineLimits limits() {
  return {.productFlops = 100,
          .copies = {{"L2", 10, 40}, {"L3", 100, 20}, {"memory", INT64_MAX, 10}}};
}

TEST(ProfileReportTest, Groups) {
  EXPECT_EQ(groupOf(row("gemm [8, 8, 8] : a", CommandKind::Library)), "products");
  EXPECT_EQ(groupOf(row("gemm [8, 8, 8] : a")), "products"); // the generated one
  EXPECT_EQ(groupOf(row("attention_grad [2, 8] : h.0.attn")), "attention");
  EXPECT_EQ(groupOf(row("embedding [16 of 29, 8] : wte")), "embedding");
  EXPECT_EQ(groupOf(row("flat [8] mulf : a.weight", CommandKind::Kernel, Phase::Update)),
            "optimizer");
  EXPECT_EQ(groupOf(row("row [8, 29] exp : lm_head, loss")), "loss");
  EXPECT_EQ(groupOf(row("row [8, 16] sqrt : h.1.ln_1, h.0")), "norms");
  EXPECT_EQ(groupOf(row("row [8, 16] sqrt : model.layers.3.input_layernorm")), "norms");
  EXPECT_EQ(groupOf(row("flat [8] add : h.0.mlp, normal.scale")), "elementwise");
  EXPECT_EQ(groupOf(row("zero", CommandKind::Zero)), "copies");
  EXPECT_EQ(groupOf(row("flat [] add")), "elementwise");
  EXPECT_EQ(groupOf(row("wait for all_reduce : a", CommandKind::CollectiveWait, Phase::Update)),
            "collectives");
}

TEST(ProfileReportTest, LayersOfOneKindAreOneModule) {
  EXPECT_EQ(modulesOf("row [8] add : h.0.ln_1, h.11.ln_1, h.0.attn.c_attn, ln_f"),
            (std::vector<std::string>{"h.*.ln_1", "h.*.attn.c_attn", "ln_f"}));
  EXPECT_EQ(modulesOf("row [8] add : 0, 2.weight"), (std::vector<std::string>{"*", "*.weight"}));
  EXPECT_TRUE(modulesOf("zero").empty());
}

TEST(ProfileReportTest, LabelsAreShortWhereLayersShareAKernel) {
  EXPECT_EQ(shortLabel("row [8] add : h.0.ln_1, h.11.ln_1, h.0.attn, ln_f"),
            "row [8] add : h.*.ln_1, h.0.attn, ln_f");
  EXPECT_EQ(shortLabel("flat [8] mulf : 0.weight"), "flat [8] mulf : 0.weight");
  EXPECT_EQ(shortLabel("zero"), "zero");
}

TEST(ProfileReportTest, ALimitIsThatOfTheLevelThatHoldsTheBytes) {
  const MachineLimits machine = limits();
  EXPECT_EQ(machine.copyOf(10).level, "L2");
  EXPECT_EQ(machine.copyOf(11).level, "L3");
  EXPECT_EQ(machine.copyOf(1000).level, "memory");
  EXPECT_DOUBLE_EQ(machine.least(0, 100), 5);
  EXPECT_DOUBLE_EQ(machine.least(700, 100), 7); // products take longer
}

TEST(ProfileReportTest, SharesAddUpToTheStep) {
  Measurement m;
  m.steps = 2, m.plainSeconds = 3, m.profiledSeconds = 4, m.limits = limits();
  m.rows = {row("gemm [8, 8, 8] : h.0.fc, h.1.fc", CommandKind::Library),
            row("row [8, 16] sqrt : h.0.fc, ln_f"),
            row("flat [8] : w", CommandKind::Kernel, Phase::Update)};
  for (const auto& shares : {shareByGroup(m), shareByModule(m)}) {
    double seconds = 0, least = 0;
    for (const ProfileShare& share : shares)
      seconds += share.seconds, least += share.least;
    EXPECT_DOUBLE_EQ(seconds, 3); // three rows of 2 s in 2 steps
    EXPECT_DOUBLE_EQ(least, 3);   // each: one call a step of 100 FLOP at 100 FLOP/s
  }
  EXPECT_EQ(shareByModule(m)[0].name, "h.*.fc");
  EXPECT_DOUBLE_EQ(shareByModule(m)[0].seconds, 1.5); // its own, and half of the norm's
}

TEST(ProfileReportTest, TheBoundIsProductsAndOnePassOverTheOptimizersState) {
  Program program;
  program.model = "m";
  auto add = [&](StateKind kind, int64_t elements, bool trainable = false) {
    State state;
    state.kind = kind, state.shape = {elements}, state.bytes = 4 * elements;
    state.trainable = trainable;
    program.states.push_back(state);
  };
  add(StateKind::Param, 10, true);
  add(StateKind::Param, 1000); // frozen
  add(StateKind::Slot, 10);
  add(StateKind::Slot, 10);
  program.functions.resize(2);
  program.functions[0].name = "eval", program.functions[0].modelFlops = 7;
  program.functions[1].name = "step", program.functions[1].modelFlops = 100;
  Measurement m;
  m.steps = 2, m.plainSeconds = 200, m.profiledSeconds = 210, m.limits = limits();
  // More than the model asks for: some of it is computed twice.
  m.rows = {row("gemm [8, 8, 8] : a", CommandKind::Library), row("gemm [8, 8, 8] : b"),
            row("row [8, 16] sqrt : ln_f")};
  const StepBound bound = boundOf(m, program);
  EXPECT_DOUBLE_EQ(bound.modelFlops, 100);
  EXPECT_DOUBLE_EQ(bound.optimizerBytes, 10 * 4 * 7); // p, m, v twice, the gradient once
  EXPECT_DOUBLE_EQ(bound.seconds(), 1 + 28);          // 280 bytes at the speed of memory
  EXPECT_NE(profileText(m, program).find("14.5% of the bound"), std::string::npos)
      << profileText(m, program);
  EXPECT_DOUBLE_EQ(profileJson(m, program)["bound"]["share"], 29.0 / 200);

  // Ranks divide the products.
  program.mesh = {{"replicate", 2}, {"shard", 2}};
  EXPECT_DOUBLE_EQ(boundOf(m, program).modelFlops, 25);
}

TEST(ProfileReportTest, WithoutALibraryMemoryIsTheOnlyLimit) {
  Measurement m;
  m.steps = 1, m.plainSeconds = m.profiledSeconds = 5, m.limits = limits();
  m.limits.productFlops = 0;
  m.rows = {row("gemm [8, 8, 8] : a")};
  EXPECT_NE(profileText(m, Program()).find("no product library"), std::string::npos);
  EXPECT_EQ(profileJson(m, Program())["kernels"][0]["limit"], "L2");
}

} // namespace
} // namespace titan
