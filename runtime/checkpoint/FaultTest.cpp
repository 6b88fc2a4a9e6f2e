// Every single operation fails, once and for good, with each error a disk can give: the caller gets
// an error with the right exit code, and nothing that existed is damaged.
#include "runtime/checkpoint/SavePlan.h"
#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/FaultEnv.h"
#include "runtime/checkpoint/testing/SampleState.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

namespace titan::checkpoint {
namespace {

constexpr const char* directory = "mlp.run";

struct Fault {
  int errorNumber;
  bool forGood;
};
constexpr Fault faults[] = {{ENOSPC, true}, {ENOSPC, false}, {EROFS, true}, {EIO, true},
                            {EIO, false},   {EDQUOT, true},  {EINTR, false}};

std::unique_ptr<CrashEnv> withCheckpoints(int64_t steps) {
  auto env = std::make_unique<CrashEnv>();
  auto store = CheckpointStore::open(directory, *env);
  for (int64_t step = 1; step <= steps; ++step)
    EXPECT_TRUE(store->save(SampleState(static_cast<uint8_t>(step)).saveRequest(step), 0).ok());
  return env;
}

void expectIntact(Env& env, int64_t step) {
  SampleState loaded(255);
  auto report =
      load(joinPath(checkpointsPath(directory), stepName(step)), loaded.loadRequest(), env);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_TRUE(loaded == SampleState(static_cast<uint8_t>(step)));
}

/// Runs `body` with a fault at each operation in turn, until one run meets none. `body` arms the
/// fault itself, after what is to succeed: arm().
template <typename Body> void forEachFault(const CrashEnv& before, Body body) {
  for (const Fault& fault : faults) {
    bool finished = false;
    for (int64_t operation = 0; !finished; ++operation) {
      const auto disk = before.clone();
      FaultEnv env(*disk);
      body(env, *disk, fault, [&] { env.failAt(operation, fault.errorNumber, fault.forGood); });
      finished = env.failed().empty();
      if (testing::Test::HasFailure()) {
        ADD_FAILURE() << "with operation " << operation << " failing: " << env.failed() << ", "
                      << std::strerror(fault.errorNumber);
        return;
      }
    }
  }
}

void expectCause(const Error& error, const FaultEnv& env, const Fault& fault) {
  EXPECT_NE(error.message().find(std::strerror(fault.errorNumber)), std::string::npos)
      << error.message();
  const std::string path = env.failed().substr(env.failed().find('\''));
  EXPECT_NE(error.message().find(path.substr(0, path.size() - 1)), std::string::npos)
      << error.message() << " does not name " << path;
  EXPECT_EQ(error.message().find('\n'), std::string::npos) << error.message();
}

TEST(Fault, InOpenIsAnEnvironmentError) {
  const auto before = withCheckpoints(2);
  forEachFault(*before, [](FaultEnv& env, CrashEnv& disk, const Fault& fault, auto arm) {
    arm();
    auto store = CheckpointStore::open(directory, env);
    EXPECT_EQ(store.ok(), env.failed().empty());
    if (!store.ok()) {
      EXPECT_EQ(store.error().exitCode(), 3);
      expectCause(store.error(), env, fault);
    }
    expectIntact(disk, 1);
    expectIntact(disk, 2);
  });
}

TEST(Fault, InPreflightIsAnEnvironmentError) {
  const auto before = withCheckpoints(2);
  forEachFault(*before, [](FaultEnv& env, CrashEnv& disk, const Fault& fault, auto arm) {
    auto store = CheckpointStore::open(directory, env);
    ASSERT_TRUE(store.ok());
    arm();
    const auto passed = store->preflight(SampleState(3).saveRequest(3), 2);
    EXPECT_EQ(passed.ok(), env.failed().empty());
    if (!passed.ok()) {
      EXPECT_EQ(passed.error().exitCode(), 3);
      expectCause(passed.error(), env, fault);
    }
    expectIntact(disk, 1);
    expectIntact(disk, 2);
  });
}

TEST(Fault, InSaveIsAFailedRunAndHarmsNothing) {
  const auto before = withCheckpoints(2);
  forEachFault(*before, [](FaultEnv& env, CrashEnv& disk, const Fault& fault, auto arm) {
    {
      auto store = CheckpointStore::open(directory, env);
      ASSERT_TRUE(store.ok());
      arm();
      auto report = store->save(SampleState(3).saveRequest(3), 2);
      if (!report.ok()) {
        EXPECT_EQ(report.error().exitCode(), 5);
        expectCause(report.error(), env, fault);
      } else {
        // Only the deletion of the oldest may fail without failing the save, and not silently.
        EXPECT_EQ(report->notes.size(), env.failed().empty() ? 0u : 1u);
        expectIntact(disk, 3);
      }
    }
    expectIntact(disk, 2);
    // The disk is mended: the next process continues.
    auto store = CheckpointStore::open(directory, disk);
    ASSERT_TRUE(store.ok()) << store.error().message();
    auto report = store->save(SampleState(4).saveRequest(4), 2);
    ASSERT_TRUE(report.ok()) << report.error().message();
    expectIntact(disk, 4);
  });
}

bool saysLoadedInPart(const Error& error) {
  return error.message().find("the state is loaded in part") != std::string::npos;
}

TEST(Fault, InLoadLeavesTheDestinationUntouchedOrSaysThatItIsLoadedInPart) {
  const auto before = withCheckpoints(1);
  int firstPass = 0, secondPass = 0;
  forEachFault(*before, [&](FaultEnv& env, CrashEnv&, const Fault& fault, auto arm) {
    arm();
    SampleState state(200);
    auto report = loadLatest(directory, state.loadRequest(), env);
    EXPECT_EQ(report.ok(), env.failed().empty());
    if (report.ok()) {
      EXPECT_TRUE(state == SampleState(1));
      return;
    }
    EXPECT_EQ(report.error().exitCode(), 3);
    expectCause(report.error(), env, fault);
    if (saysLoadedInPart(report.error())) {
      ++secondPass;
      // Counters come last: what was loaded in part never looks like the step that was saved.
      EXPECT_EQ(state.bytes("step"), SampleState(200).bytes("step"));
    } else {
      ++firstPass;
      EXPECT_TRUE(state == SampleState(200));
    }
  });
  EXPECT_GT(firstPass, 0);
  EXPECT_GT(secondPass, 0);
}

TEST(Fault, InLoadWeightsLeavesTheDestinationUntouchedOrSaysThatItIsLoadedInPart) {
  const auto before = withCheckpoints(1);
  const std::string weights =
      joinPath(checkpointsPath(directory),
               "step-00000001/model/shard-00001-model-00001-of-00001.safetensors");
  int firstPass = 0, secondPass = 0;
  forEachFault(*before, [&](FaultEnv& env, CrashEnv&, const Fault& fault, auto arm) {
    arm();
    SampleState state(200);
    auto report = loadWeights(weights, state.initRequest(), env);
    EXPECT_EQ(report.ok(), env.failed().empty());
    if (report.ok())
      return;
    EXPECT_EQ(report.error().exitCode(), 3);
    expectCause(report.error(), env, fault);
    saysLoadedInPart(report.error()) ? ++secondPass : ++firstPass;
    if (!saysLoadedInPart(report.error()))
      EXPECT_TRUE(state == SampleState(200));
  });
  EXPECT_GT(firstPass, 0);
  EXPECT_GT(secondPass, 0);
}

TEST(Fault, OfTheLastSyncMakesTheStoreRefuseFurtherSaves) {
  const auto disk = withCheckpoints(1);
  FaultEnv env(*disk);
  auto store = CheckpointStore::open(directory, env);
  ASSERT_TRUE(store.ok());
  // What is durable is unknown after a failed sync, so "already committed" must not follow.
  for (int64_t operation = 0;; ++operation) {
    env.failAt(operation, EIO, false);
    auto report = store->save(SampleState(2).saveRequest(2), 0);
    ASSERT_TRUE(!report.ok()) << "the save never came to the sync of the parent";
    if (env.failed() == fmt::format("sync '{}'", checkpointsPath(directory)))
      break;
  }
  env.failAt(FaultEnv::never, 0, false);
  EXPECT_FALSE(store->save(SampleState(2).saveRequest(2), 0).ok());
  EXPECT_FALSE(store->save(SampleState(3).saveRequest(3), 0).ok());
  // Nobody counts it: its name is taken back.
  const auto checkpoints = store->list();
  ASSERT_EQ(checkpoints->size(), 1u);
  EXPECT_EQ(checkpoints->front().step, 1);
}

} // namespace
} // namespace titan::checkpoint
