#include "runtime/program/HostStates.h"

#include "runtime/program/Recipe.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

/// States of 40 bytes, 64 apart, in the order of `kinds`, on `device` by the recipe.
Program programOf(const std::vector<StateKind>& kinds, const std::string& device,
                  const std::string& target = "cuda") {
  Program program;
  program.target.kind = target;
  Recipe recipe;
  recipe.ema.device = device;
  program.recipe = toJson(recipe);
  for (const StateKind kind : kinds) {
    State& state = program.states.emplace_back();
    state.kind = kind;
    state.offset = program.stateBytes;
    state.bytes = 40;
    program.stateBytes += 64;
  }
  program.arenaBytes = program.stateBytes + 1000;
  return program;
}

std::vector<std::pair<int64_t, int64_t>> rangesOf(const Program& program) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const ArenaRange& range : hostRanges(program))
    ranges.emplace_back(range.offset, range.bytes);
  return ranges;
}

using enum StateKind;

TEST(HostStates, AreAveragesWithThePaddingBehindThem) {
  const Program program = programOf({Param, Ema, Ema, Counter, Ema}, "host");
  EXPECT_EQ(rangesOf(program), (std::vector<std::pair<int64_t, int64_t>>{{64, 128}, {256, 64}}));
  EXPECT_EQ(hostBytes(program), 192);
  EXPECT_EQ(deviceBytes(program), program.arenaBytes - 192);
}

TEST(HostStates, DoNotDependOnTheOrderOfTheTable) {
  Program program = programOf({Param, Ema, Ema, Counter}, "host");
  std::swap(program.states[0], program.states[2]);
  EXPECT_EQ(rangesOf(program), (std::vector<std::pair<int64_t, int64_t>>{{64, 128}}));
}

TEST(HostStates, AreNoneOnACpuOrWhereTheRecipeKeepsThem) {
  EXPECT_EQ(hostBytes(programOf({Param, Ema}, "device")), 0);
  EXPECT_EQ(hostBytes(programOf({Param, Ema}, "host", "cpu")), 0);
  EXPECT_EQ(hostBytes(programOf({Param, Buffer}, "host")), 0);
}

} // namespace
} // namespace titan
