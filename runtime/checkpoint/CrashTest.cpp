// A crash at every single operation of a save: afterwards a load finds the old or the new
// checkpoint, never another, and what was reported as committed is there.
#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/FaultEnv.h"
#include "runtime/checkpoint/testing/SampleState.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace titan::checkpoint {
namespace {

using Loss = CrashEnv::Loss;

constexpr const char* directory = "runs/mlp.run";
constexpr int64_t keep = 2;

uint8_t fillOf(int64_t step) { return static_cast<uint8_t>(step * 16); }

/// One process: opens the directory and saves `step`. What it believes to have committed.
bool openAndSave(Env& env, int64_t step) {
  auto store = CheckpointStore::open(directory, env);
  if (!store.ok())
    return false;
  const SampleState state(fillOf(step));
  return store->save(state.saveRequest(step), keep).ok();
}

std::unique_ptr<CrashEnv> withCheckpoints(std::initializer_list<int64_t> steps) {
  auto env = std::make_unique<CrashEnv>();
  EXPECT_TRUE(env->makeDirectory("runs").ok());
  EXPECT_TRUE(env->syncDirectory(".").ok());
  for (int64_t step : steps)
    EXPECT_TRUE(openAndSave(*env, step));
  return env;
}

/// Every checkpoint that is there is whole and what was saved under its step; returns the steps.
std::vector<int64_t> checkedSteps(Env& env) {
  std::vector<int64_t> steps;
  auto all = listCheckpoints(env, directory);
  EXPECT_TRUE(all.ok());
  for (const CheckpointInfo& info : *all) {
    SampleState loaded(255);
    auto report = load(info.path, loaded.loadRequest(), env);
    EXPECT_TRUE(report.ok()) << report.error().message();
    EXPECT_TRUE(loaded == SampleState(fillOf(info.step))) << "other bytes in " << info.path;
    steps.push_back(info.step);
  }
  return steps;
}

void expectNoLeftovers(Env& env) {
  const auto entries = env.readDirectory(checkpointsPath(directory));
  for (const DirectoryEntry& entry : *entries)
    EXPECT_FALSE(entry.name.starts_with(".")) << entry.name;
}

struct PowerLoss {
  Loss loss;
  uint64_t seed = 0;
};

std::vector<PowerLoss> powerLosses(uint64_t seeds) {
  std::vector<PowerLoss> all = {{Loss::Everything}, {Loss::Data}, {Loss::Nothing}};
  for (uint64_t seed = 0; seed < seeds; ++seed)
    all.push_back({Loss::Random, seed});
  return all;
}

TEST(Crash, AtEveryOperationOfASaveLeavesTheOldOrTheNewCheckpoint) {
  const auto before = withCheckpoints({1, 2});
  int64_t operations = 0;
  for (bool finished = false; !finished; ++operations) {
    const auto machine = before->clone();
    FaultEnv env(*machine);
    env.failAt(operations, EIO, /*forGood=*/true);
    const bool committed = openAndSave(env, 3);
    finished = env.failed().empty();
    for (const PowerLoss& power : powerLosses(24)) {
      SCOPED_TRACE(fmt::format("crash before operation {}: {}, loss {}, seed {}", operations,
                               env.failed(), static_cast<int>(power.loss), power.seed));
      const auto restarted = machine->clone();
      restarted->crash(power.loss, power.seed);
      const std::vector<int64_t> steps = checkedSteps(*restarted);
      ASSERT_FALSE(steps.empty());
      if (committed)
        EXPECT_EQ(steps.back(), 3);
      else
        EXPECT_TRUE(steps.back() == 2 || steps.back() == 3);
      // Step 1 may go when step 3 is committed, step 2 never.
      EXPECT_TRUE(std::find(steps.begin(), steps.end(), 2) != steps.end());

      ASSERT_TRUE(openAndSave(*restarted, 4));
      EXPECT_EQ(checkedSteps(*restarted).back(), 4);
      expectNoLeftovers(*restarted);
    }
    if (HasFailure())
      return;
  }
  EXPECT_GT(operations, 40) << "fewer operations than a save has";
}

TEST(Crash, AtEveryOperationOfTheFirstSaveLeavesNothingOrTheCheckpoint) {
  CrashEnv before;
  int64_t operations = 0;
  for (bool finished = false; !finished; ++operations) {
    const auto machine = before.clone();
    FaultEnv env(*machine);
    env.failAt(operations, EIO, /*forGood=*/true);
    const bool committed = openAndSave(env, 1);
    finished = env.failed().empty();
    for (const PowerLoss& power : powerLosses(24)) {
      SCOPED_TRACE(fmt::format("crash before operation {}: {}, loss {}, seed {}", operations,
                               env.failed(), static_cast<int>(power.loss), power.seed));
      const auto restarted = machine->clone();
      restarted->crash(power.loss, power.seed);
      const std::vector<int64_t> steps = checkedSteps(*restarted);
      EXPECT_TRUE(steps == std::vector<int64_t>{1} || (steps.empty() && !committed));
      ASSERT_TRUE(openAndSave(*restarted, 2));
    }
    if (HasFailure())
      return;
  }
}

TEST(Crash, WhileLaterCheckpointsAreSetAsideLosesNone) {
  const auto before = withCheckpoints({1, 2});
  bool finished = false;
  for (int64_t operation = 0; !finished; ++operation) {
    const auto machine = before->clone();
    FaultEnv env(*machine);
    auto store = CheckpointStore::open(directory, env);
    ASSERT_TRUE(store.ok());
    env.failAt(operation, EIO, /*forGood=*/true);
    const bool isAside = store->setAsideAfter(0).ok();
    finished = env.failed().empty();
    for (const PowerLoss& power : powerLosses(24)) {
      SCOPED_TRACE(fmt::format("crash before {}, loss {}, seed {}", env.failed(),
                               static_cast<int>(power.loss), power.seed));
      const auto restarted = machine->clone();
      restarted->crash(power.loss, power.seed);
      size_t whole = 0, aside = 0;
      const auto entries = restarted->readDirectory(checkpointsPath(directory));
      for (const DirectoryEntry& entry : *entries) {
        whole += verify(joinPath(checkpointsPath(directory), entry.name), *restarted).ok();
        aside += entry.name.starts_with("aside-step-");
      }
      EXPECT_EQ(whole, 2u);
      EXPECT_TRUE(aside == 2 || !isAside);
    }
    ASSERT_FALSE(HasFailure());
  }
}

/// The process is killed (nothing is lost yet), a second one takes over, and the power fails under
/// that one.
void crashUnderTheNextProcess(const CrashEnv& before, bool hasCheckpoints) {
  bool firstFinished = false;
  for (int64_t first = 0; !firstFinished; ++first) {
    const auto killed = before.clone();
    FaultEnv firstEnv(*killed);
    firstEnv.failAt(first, EIO, /*forGood=*/true);
    const bool firstCommitted = openAndSave(firstEnv, 3);
    firstFinished = firstEnv.failed().empty();
    bool secondFinished = false;
    for (int64_t second = 0; !secondFinished; ++second) {
      const auto machine = killed->clone();
      FaultEnv env(*machine);
      env.failAt(second, EIO, /*forGood=*/true);
      const bool secondCommitted = openAndSave(env, 4);
      secondFinished = env.failed().empty();
      for (const PowerLoss& power : {PowerLoss{Loss::Everything}, PowerLoss{Loss::Random}}) {
        SCOPED_TRACE(fmt::format("killed before {}: {}; crash before {}: {}; loss {}", first,
                                 firstEnv.failed(), second, env.failed(),
                                 static_cast<int>(power.loss)));
        const auto restarted = machine->clone();
        restarted->crash(power.loss, static_cast<uint64_t>(first * 1000 + second));
        const std::vector<int64_t> steps = checkedSteps(*restarted);
        const int64_t newest = steps.empty() ? 0 : steps.back();
        EXPECT_GE(newest, secondCommitted ? 4 : firstCommitted ? 3 : hasCheckpoints ? 2 : 0);
      }
      if (testing::Test::HasFailure())
        return;
    }
  }
}

TEST(Crash, OfTheProcessThenOfTheMachineUnderTheNextProcess) {
  crashUnderTheNextProcess(*withCheckpoints({1, 2}), true);
}

TEST(Crash, OfTheFirstProcessThenOfTheMachineUnderTheNextProcess) {
  crashUnderTheNextProcess(CrashEnv(), false);
}

} // namespace
} // namespace titan::checkpoint
