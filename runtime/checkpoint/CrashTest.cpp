// The power fails at every single operation of a save: afterwards a load finds the old or the new
// checkpoint, never another, and what was reported as committed is there.
//
// What a power loss may leave is tried in 2^12 ways; where there are more, others are drawn.
// TITAN_TEST_POWER_LOSSES=N draws N states at each operation, TITAN_TEST_SEED=S others.
// TITAN_TEST_ROWS=N gives the largest tensors N rows of 240 bytes, and so pages for more states.
#include "runtime/checkpoint/SavePlan.h"
#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/FaultEnv.h"
#include "runtime/checkpoint/testing/SampleState.h"
#include "runtime/checkpoint/testing/Survivors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <unordered_set>

namespace titan::checkpoint {
namespace {

using Loss = CrashEnv::Loss;
using SyncFault = CrashEnv::SyncFault;

constexpr const char* directory = "runs/mlp.run";
constexpr int64_t keep = 2;

uint64_t numberOf(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

SampleState makeState(int64_t step) {
  static const Shape shape = {static_cast<int64_t>(numberOf("TITAN_TEST_ROWS", 40)), 60};
  SampleState state;
  state.add("fc2.weight", StateKind::Param, DType::F32, shape);
  state.add("fc2.weight.exp_avg", StateKind::Slot, DType::F32, shape);
  state.addAverages({"fast", "slow"});
  state.refill(static_cast<uint8_t>(step * 16));
  return state;
}

/// The state at `step`, with averages; its files have several pages. Made once.
const SampleState& stateAt(int64_t step) {
  static std::map<int64_t, SampleState> states;
  const auto found = states.find(step);
  return found != states.end() ? found->second
                               : states.emplace(step, makeState(step)).first->second;
}

/// As a run saves: by a plan that is made once.
bool save(CheckpointStore& store, int64_t step) {
  static std::map<int64_t, SavePlan> plans;
  const SaveRequest request = stateAt(step).saveRequest(step);
  auto plan = plans.find(step);
  if (plan == plans.end())
    plan = plans.emplace(step, SavePlan::of(request, /*rank=*/0).take()).first;
  return store.save(plan->second, {step, request.counters}, keep).ok();
}

/// One process: opens the directory and saves `step`. What it believes to have committed.
bool openAndSave(Env& env, int64_t step) {
  auto store = CheckpointStore::open(directory, env);
  return store.ok() && save(*store, step);
}

std::unique_ptr<CrashEnv> withCheckpoints(std::initializer_list<int64_t> steps) {
  auto env = std::make_unique<CrashEnv>();
  EXPECT_TRUE(env->makeDirectory("runs").ok());
  EXPECT_TRUE(env->syncDirectory(".").ok());
  for (int64_t step : steps)
    EXPECT_TRUE(openAndSave(*env, step));
  return env;
}

/// What has to be found: checkpoints whose newest is at `atLeast` or later (0: none is needed), and
/// one of step `kept` (0: of none).
struct Promise {
  int64_t atLeast = 0, kept = 0;
};

/// Whether the checkpoint is whole and what was saved under its step: the error, or empty. Looks at
/// bytes that it has seen there only once.
std::string damageOf(CrashEnv& env, const CheckpointInfo& info) {
  static std::map<std::pair<std::string, std::string>, std::string> known;
  const auto [found, isNew] = known.try_emplace({info.path, env.digest(info.path)});
  if (isNew) {
    SampleState loaded = stateAt(0);
    if (auto report = load(info.path, loaded.loadRequest(), env); !report.ok())
      found->second = report.error().message();
    else if (loaded != stateAt(info.step))
      found->second = fmt::format("other bytes in {}", info.path);
  }
  return found->second;
}

/// What of a promise a restarted machine breaks; empty if it breaks nothing. Then the next
/// process saves `nextStep` there, if that is not 0.
std::string brokenPromise(CrashEnv& env, Promise promise, int64_t nextStep) {
  const auto all = listCheckpoints(env, directory);
  if (!all.ok())
    return all.error().message();
  int64_t newest = 0;
  bool isKept = promise.kept == 0;
  for (const CheckpointInfo& info : *all) {
    if (std::string damage = damageOf(env, info); !damage.empty())
      return damage;
    newest = std::max(newest, info.step);
    isKept = isKept || info.step == promise.kept;
  }
  if (newest < promise.atLeast)
    return fmt::format("step {} was committed, and {} is the newest", promise.atLeast, newest);
  if (!isKept)
    return fmt::format("step {} is gone", promise.kept);

  if (nextStep == 0)
    return {};
  if (!openAndSave(env, nextStep))
    return "the next process cannot save";
  const auto entries = env.readDirectory(checkpointsPath(directory));
  for (const DirectoryEntry& entry : *entries)
    if (entry.name.starts_with("."))
      return fmt::format("'{}' is left over", entry.name);
  return brokenPromise(env, {nextStep, 0}, 0);
}

/// All that power losses may leave of machines, each state once.
class PowerLosses {
public:
  /// Draws `wanted` new states at each operation, if it has so many.
  explicit PowerLosses(size_t wanted)
      : wanted_(numberOf("TITAN_TEST_POWER_LOSSES", wanted)),
        seed_(numberOf("TITAN_TEST_SEED", 1)) {}

  /// The first promise that a restart of `machine` breaks, with how to see it again.
  std::string broken(const CrashEnv& machine, Promise promise, int64_t nextStep) {
    for (Loss loss : {Loss::Everything, Loss::Data, Loss::Nothing}) {
      const auto restarted = machine.crashed(loss);
      if (!isNew(restarted->digest(), promise))
        continue;
      if (auto text = brokenIn(*restarted, promise, nextStep); !text.empty())
        return fmt::format("loss {}: {}", static_cast<int>(loss), text);
    }
    const SettledTrees settled = machine.settled();
    EveryChoice choices;
    for (int way = 0; way < 1 << 12; ++way) {
      if (auto text = brokenAfter(choices, machine, settled, promise, nextStep); !text.empty())
        return text;
      if (!choices.next())
        return {};
    }
    return drawnBroken(machine, settled, promise, nextStep);
  }

  size_t states() const { return seen_.size(); }

private:
  std::string drawnBroken(const CrashEnv& machine, const SettledTrees& settled, Promise promise,
                          int64_t nextStep) {
    constexpr size_t mostDrawsOfAState = 3;
    const size_t enough = states() + wanted_;
    for (size_t draw = 0; draw < wanted_ * mostDrawsOfAState && states() < enough; ++draw) {
      DrawnChoices choices(seed_++);
      if (auto text = brokenAfter(choices, machine, settled, promise, nextStep); !text.empty())
        return fmt::format("seed {}: {}", seed_ - 1, text);
    }
    return {};
  }

  /// The state that `choices` leaves is recognised by its digest before it is made.
  template <typename SomeChoices>
  std::string brokenAfter(SomeChoices& choices, const CrashEnv& machine,
                          const SettledTrees& settled, Promise promise, int64_t nextStep) {
    SomeChoices again = choices;
    return isNew(machine.digestOfCrashed(choices, settled), promise)
               ? brokenIn(*machine.crashed(again), promise, nextStep)
               : std::string();
  }

  bool isNew(const std::string& digest, Promise promise) {
    const uint64_t key = std::stoull(digest.substr(0, 16), nullptr, 16);
    return seen_.insert(key * 31 + static_cast<uint64_t>(promise.atLeast)).second;
  }

  /// A save takes longer than a look, so that the next process tries one in eight.
  std::string brokenIn(CrashEnv& restarted, Promise promise, int64_t nextStep) const {
    return brokenPromise(restarted, promise, seen_.size() % 8 == 0 ? nextStep : 0);
  }

  size_t wanted_;
  uint64_t seed_;
  std::unordered_set<uint64_t> seen_;
};

/// The power fails at each operation of `process`, which starts on `before`, in turn: calls
/// `look(machine, result of process, operation)`.
template <typename Process, typename Look>
void atEachOperation(const CrashEnv& before, Process process, Look look) {
  bool finished = false;
  for (int64_t operation = 0; !finished && !testing::Test::HasFailure(); ++operation) {
    const auto machine = before.clone();
    FaultEnv env(*machine);
    env.failAt(operation, EIO, /*forGood=*/true);
    const auto result = process(env);
    finished = env.failed().empty();
    SCOPED_TRACE(fmt::format("operation {}: {}", operation, env.failed()));
    look(*machine, result, operation);
  }
}

/// The two tests that call it try more than 10^4 together.
void expectManyStates(size_t states) {
  EXPECT_GT(states, 5000u);
  std::printf("%zu states after a power loss\n", states);
}

TEST(Crash, AtEveryOperationOfASaveLeavesTheOldOrTheNewCheckpoint) {
  PowerLosses losses(1200);
  int64_t operations = 0;
  atEachOperation(
      *withCheckpoints({1, 2}), [](Env& env) { return openAndSave(env, 3); },
      [&](const CrashEnv& machine, bool committed, int64_t operation) {
        // Step 1 may go when step 3 is committed, step 2 never.
        EXPECT_EQ(losses.broken(machine, {committed ? 3 : 2, 2}, 4), "");
        operations = operation;
      });
  EXPECT_GT(operations, 40) << "fewer operations than a save has";
  expectManyStates(losses.states());
}

TEST(Crash, AtEveryOperationOfTheFirstSaveLeavesNothingOrTheCheckpoint) {
  PowerLosses losses(100);
  atEachOperation(
      CrashEnv(), [](Env& env) { return openAndSave(env, 1); },
      [&](const CrashEnv& machine, bool committed, int64_t) {
        EXPECT_EQ(losses.broken(machine, {committed ? 1 : 0, 0}, 2), "");
      });
}

TEST(Crash, TheDigestOfAStateThatIsNotMadeIsThatOfTheState) {
  const auto before = withCheckpoints({1, 2});
  std::unordered_set<std::string> digests;
  atEachOperation(
      *before, [](Env& env) { return openAndSave(env, 3); },
      [&](const CrashEnv& machine, bool, int64_t operation) {
        const SettledTrees settled = machine.settled();
        for (uint64_t seed = 0; seed < 4; ++seed) {
          DrawnChoices choices(static_cast<uint64_t>(operation) * 4 + seed), again(choices);
          const std::string digest = machine.digestOfCrashed(choices, settled);
          ASSERT_EQ(digest, machine.crashed(again)->digest());
          digests.insert(digest);
        }
      });
  EXPECT_GT(digests.size(), 100u);
}

TEST(Crash, WhileLaterCheckpointsAreSetAsideLosesNone) {
  const auto setAside = [](Env& env) {
    auto store = CheckpointStore::open(directory, env);
    return store.ok() && store->setAsideAfter(0).ok();
  };
  atEachOperation(*withCheckpoints({1, 2}), setAside,
                  [](const CrashEnv& machine, bool isAside, int64_t) {
                    EveryChoice choices;
                    do {
                      const auto restarted = machine.crashed(choices);
                      size_t whole = 0, aside = 0;
                      const auto entries = restarted->readDirectory(checkpointsPath(directory));
                      for (const DirectoryEntry& entry : *entries) {
                        const std::string path = joinPath(checkpointsPath(directory), entry.name);
                        whole += verify(path, *restarted).ok();
                        aside += entry.name.starts_with("aside-step-");
                      }
                      EXPECT_EQ(whole, 2u);
                      EXPECT_TRUE(aside == 2 || !isAside);
                    } while (choices.next());
                  });
}

/// The process that saves step 3 is killed at its first operations and at each `stride`-th (nothing
/// is lost yet), or ends; calls `look(machine, newest step that is committed)`.
template <typename Look>
void afterEachKill(const CrashEnv& before, int64_t saved, int64_t stride, Look look) {
  atEachOperation(
      before, [](Env& env) { return openAndSave(env, 3); },
      [&](const CrashEnv& killed, bool committed, int64_t operation) {
        if (committed || operation < 25 || operation % stride == 0)
          look(killed, committed ? 3 : saved);
      });
}

TEST(Crash, OfTheProcessThenOfTheMachineUnderTheNextProcess) {
  uint64_t seed = numberOf("TITAN_TEST_SEED", 1);
  std::unordered_set<std::string> states;
  const auto look = [&](const CrashEnv& killed, int64_t saved) {
    atEachOperation(
        killed, [](Env& env) { return openAndSave(env, 4); },
        [&](const CrashEnv& machine, bool committed, int64_t) {
          const Promise promise{committed ? 4 : saved, 0};
          EXPECT_EQ(brokenPromise(*machine.crashed(Loss::Everything), promise, 0), "");
          DrawnChoices choices(++seed);
          const auto drawn = machine.crashed(choices);
          EXPECT_EQ(brokenPromise(*drawn, promise, 0), "") << "seed " << seed;
          states.insert(drawn->digest());
        });
  };
  afterEachKill(*withCheckpoints({1, 2}), 2, 1, look);
  afterEachKill(CrashEnv(), 0, 1, look);
  expectManyStates(states.size());
}

/// "runs/mlp.run/checkpoints, sync 2": which sync of a process that is, attempts without their
/// numbers.
std::string siteOf(const std::vector<std::string>& syncs, size_t sync) {
  const int64_t nth =
      std::count(syncs.begin(), syncs.begin() + static_cast<ptrdiff_t>(sync) + 1, syncs[sync]);
  std::string path = syncs[sync];
  if (const size_t attempt = path.find("-00000004-"); attempt != std::string::npos)
    path.erase(attempt + 9, 17);
  return fmt::format("{}, sync {}", path, nth);
}

TEST(Crash, LeavingOutAnySyncBreaksAPromise) {
  std::map<std::string, bool> sites; // does leaving it out break one?
  const auto look = [&](const CrashEnv& killed, int64_t saved) {
    const auto whole = killed.clone();
    whole->faultAtSync(-1, SyncFault::LeftOut);
    ASSERT_TRUE(openAndSave(*whole, 4));
    for (size_t sync = 0; sync < whole->syncs().size(); ++sync) {
      bool& breaks = sites[siteOf(whole->syncs(), sync)];
      if (breaks)
        continue;
      const auto started = killed.clone();
      started->faultAtSync(static_cast<int64_t>(sync), SyncFault::LeftOut);
      // A process that does nothing ends the search.
      atEachOperation(
          *started, [&](Env& env) { return !breaks && openAndSave(env, 4); },
          [&](const CrashEnv& machine, bool committed, int64_t operation) {
            // Of four draws in a row one prefers nothing.
            constexpr uint64_t draws = 4;
            for (uint64_t draw = 0; draw <= draws && !breaks; ++draw) {
              DrawnChoices choices(static_cast<uint64_t>(operation) * draws + draw);
              const auto restarted =
                  draw == 0 ? machine.crashed(Loss::Everything) : machine.crashed(choices);
              breaks = !brokenPromise(*restarted, {committed ? 4 : saved, 0}, 0).empty();
            }
          });
    }
  };
  afterEachKill(*withCheckpoints({1, 2}), 2, 5, look);
  afterEachKill(CrashEnv(), 0, 5, look);

  std::vector<std::string> needless;
  for (const auto& [site, breaks] : sites)
    if (!breaks)
      needless.push_back(site);
  // RATIONALE says why these stand there all the same.
  EXPECT_EQ(needless,
            (std::vector<std::string>{"runs, sync 2", "runs/mlp.run, sync 2",
                                      "runs/mlp.run/checkpoints/.attempt-step-00000004, sync 1"}));
  EXPECT_GT(sites.size(), 10u);
}

// What a failed sync was to write is clean afterwards: the next sync succeeds, and it is lost.
TEST(Crash, AfterASyncThatFailedLosesNothingThatWasReported) {
  constexpr int64_t stride = 7; // of the operations at which the machine stops in the next save
  const auto before = withCheckpoints({1, 2});
  bool isHit = true;
  for (int64_t sync = 0; isHit; ++sync) {
    bool isCut = true;
    for (int64_t operation = sync % stride; isCut; operation += stride) {
      const auto machine = before->clone();
      machine->faultAtSync(sync, SyncFault::Fails);
      FaultEnv env(*machine);
      int64_t committed = 2;
      if (auto store = CheckpointStore::open(directory, env); store.ok()) {
        // As a run does that goes on after a failure.
        committed = save(*store, 3) ? 3 : committed;
        env.failAt(operation, EIO, /*forGood=*/true);
        committed = save(*store, 4) ? 4 : committed;
      }
      isCut = !env.failed().empty();
      isHit = static_cast<int64_t>(machine->syncs().size()) > sync;
      SCOPED_TRACE(fmt::format("sync {} of '{}' failed, then operation {}: {}", sync,
                               isHit ? machine->syncs()[static_cast<size_t>(sync)] : "none",
                               operation, env.failed()));
      const Promise promise{committed, 0};
      EXPECT_EQ(brokenPromise(*machine->crashed(Loss::Everything), promise, 5), "");
      for (uint64_t seed = 0; seed < 8; ++seed) {
        DrawnChoices choices(seed);
        EXPECT_EQ(brokenPromise(*machine->crashed(choices), promise, seed ? 0 : 5), "") << seed;
      }
      // No power is lost, but the next process relies on what it sees.
      const auto next = machine->crashed(Loss::Nothing);
      EXPECT_EQ(brokenPromise(*next, promise, 5), "");
      if (HasFailure())
        return;
    }
  }
}

} // namespace
} // namespace titan::checkpoint
