// Saves and loads of ranks, one of which fails or dies at any operation.
#include "runtime/checkpoint/Load.h"
#include "runtime/checkpoint/testing/FaultEnv.h"
#include "runtime/checkpoint/testing/RankDisk.h"
#include "runtime/collective/testing/RankThreads.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace titan::checkpoint {
namespace {

using titan::testing::onRanks;

/// A rank's process ends in the middle of an operation.
struct Killed {};

struct Fault {
  int64_t rank, operation;
  enum Kind { Once, ForGood, Kill } kind;
};

/// Saves `step` on all ranks with a fault on one of them. Who believes that it is committed, and
/// what the others say; `met`: was the fault reached?
struct Outcome {
  bool committed = false, met = false;
  std::vector<Error> errors;
};

Outcome saveWith(const Fault& fault, CrashEnv& files, const std::vector<Tensor>& tensors,
                 const Mesh& mesh, int64_t step) {
  std::mutex mutex;
  struct End {
    std::optional<Error> error;
    bool met = false;
  };
  const std::vector<End> ends = onRanks(rankCount(mesh), [&](Peers& peers) -> End {
    LockedEnv shared(files, mutex);
    FaultEnv env(shared);
    bool killed = false;
    MeshState state(tensors, mesh, peers.rank());
    state.fill(static_cast<uint8_t>(step));
    try {
      auto store = CheckpointStore::open(runDirectory, peers, env);
      if (!store.ok())
        return {store.takeError(), false};
      if (peers.rank() == fault.rank && fault.kind == Fault::Kill)
        env.beforeEach([&, from = env.operations()](int64_t operation) {
          if (operation - from == fault.operation) {
            killed = true;
            throw Killed();
          }
        });
      else if (peers.rank() == fault.rank)
        env.failAt(fault.operation, ENOSPC, fault.kind == Fault::ForGood);
      auto report = store->save(state.saveRequest(step), 2);
      if (!report.ok())
        return {report.takeError(), !env.failed().empty()};
      return {std::nullopt, !env.failed().empty()};
    } catch (const Killed&) {
      peers.communicator()->fail(Error::runFailed("rank {} was killed", peers.rank()));
      return {std::nullopt, true};
    }
  });
  Outcome outcome;
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    outcome.met = outcome.met || ends[rank].met;
    const bool wasKilled = fault.kind == Fault::Kill && ends[rank].met;
    if (ends[rank].error)
      outcome.errors.push_back(*ends[rank].error);
    else if (!wasKilled)
      outcome.committed = true;
  }
  return outcome;
}

constexpr int64_t faultRanks = 3;

struct FaultRig {
  Mesh mesh = {{"shard", faultRanks}};
  std::vector<Tensor> tensors = {
      {"w", StateKind::Param, DType::F32, {7, 3}, {{0, 0}}},
      {"b", StateKind::Param, DType::F32, {3}, {}},
      {"w.exp_avg", StateKind::Slot, DType::F32, {7, 3}, {{0, 1}}},
  };
  RankDisk disk;
  FaultRig() {
    for (int64_t step : {1, 2})
      saveOn(disk, tensors, mesh, step);
  }

  /// The checkpoints that are there, each of which must be what was saved under its step.
  std::vector<int64_t> steps(CrashEnv& files) const {
    std::vector<int64_t> steps;
    const auto all = listCheckpoints(files, runDirectory);
    for (const CheckpointInfo& info : *all) {
      MeshState state(tensorsOfOne(), {}, 0);
      auto report = load(info.path, state.loadRequest(nullptr), files);
      EXPECT_TRUE(report.ok()) << report.error().message();
      EXPECT_EQ(state.differing(static_cast<uint8_t>(info.step)), "");
      steps.push_back(info.step);
    }
    return steps;
  }
  std::vector<Tensor> tensorsOfOne() const {
    std::vector<Tensor> whole = tensors;
    for (Tensor& tensor : whole)
      tensor.placement.clear();
    return whole;
  }
  /// The next process goes on, and cleans up.
  void expectGoesOn(CrashEnv& files) const {
    RankDisk next(files.clone());
    saveOn(next, tensors, mesh, 9);
    EXPECT_EQ(steps(*next.files).back(), 9);
    const auto entries = next.files->readDirectory(checkpointsPath(runDirectory));
    for (const DirectoryEntry& entry : *entries)
      EXPECT_FALSE(entry.name.starts_with(".")) << entry.name;
  }
};

TEST(RankFaults, OfAnyRankAtAnyOperationEndAllRanksAndHarmNothing) {
  const FaultRig rig;
  for (const Fault::Kind kind : {Fault::Once, Fault::ForGood})
    for (int64_t rank = 0; rank < faultRanks; ++rank) {
      bool met = true;
      int64_t operation = 0;
      for (; met; ++operation) {
        SCOPED_TRACE(fmt::format("operation {} of rank {} fails, kind {}", operation, rank,
                                 static_cast<int>(kind)));
        const auto files = rig.disk.files->clone();
        const Outcome outcome = saveWith({rank, operation, kind}, *files, rig.tensors, rig.mesh, 3);
        met = outcome.met;
        // All or none: only the deletion of an old checkpoint may fail and be a note.
        if (outcome.committed) {
          EXPECT_TRUE(outcome.errors.empty());
          EXPECT_TRUE(!met || rank == 0);
        } else {
          EXPECT_EQ(outcome.errors.size(), static_cast<size_t>(faultRanks));
        }
        for (const Error& error : outcome.errors) {
          EXPECT_EQ(error.exitCode(), 5);
          EXPECT_TRUE(error.message().starts_with("the checkpoint of step 3 was not saved: "))
              << error.message();
          EXPECT_NE(error.message().find("No space left on device"), std::string::npos);
          EXPECT_TRUE(rank == 0 ||
                      error.message().find(fmt::format("rank {}: ", rank)) != std::string::npos)
              << error.message();
        }
        const std::vector<int64_t> steps = rig.steps(*files);
        EXPECT_TRUE(std::ranges::count(steps, 2) == 1);
        EXPECT_TRUE(!outcome.committed || steps.back() == 3);
        if (operation % 5 == 0)
          rig.expectGoesOn(*files);
        if (::testing::Test::HasFailure())
          return;
      }
      EXPECT_GT(operation, 8) << "fewer operations than rank " << rank << " has";
    }
}

TEST(RankFaults, OfAnyRankAtAnyOperationOfALoadEndAllRanks) {
  const FaultRig rig;
  for (int64_t rank = 0; rank < faultRanks; ++rank) {
    bool met = true;
    int64_t operation = 0;
    for (; met; ++operation) {
      SCOPED_TRACE(fmt::format("operation {} of rank {} fails", operation, rank));
      RankDisk disk(rig.disk.files->clone());
      std::atomic<bool> failed = false;
      const std::vector<std::string> errors = onRanks(faultRanks, [&](Peers& peers) {
        FaultEnv env(disk.of(peers));
        if (peers.rank() == rank)
          env.failAt(operation, EIO, /*forGood=*/false);
        MeshState state(rig.tensors, rig.mesh, peers.rank());
        state.fill(255);
        auto report = load(stepPath(2), state.loadRequest(&peers), env);
        if (!env.failed().empty()) // the others do not take it back
          failed = true;
        if (report.ok())
          return state.differing(2);
        EXPECT_EQ(report.error().exitCode(), 3);
        // Counters come last: what was loaded in part never looks like the step that was saved.
        EXPECT_NE(state.differing(2), "");
        return report.error().message();
      });
      met = failed;
      for (const std::string& error : errors) {
        EXPECT_EQ(error.empty(), !met) << error;
        EXPECT_TRUE(!met || rank == 0 || error.starts_with(fmt::format("rank {}: ", rank)))
            << error;
      }
      if (::testing::Test::HasFailure())
        return;
    }
    EXPECT_GT(operation, 1);
  }
}

TEST(RankFaults, ADeathOfAnyRankAtAnyOperationLeavesTheOldOrTheNewCheckpoint) {
  const FaultRig rig;
  for (int64_t rank = 0; rank < faultRanks; ++rank) {
    bool met = true;
    for (int64_t operation = 0; met; ++operation) {
      const auto files = rig.disk.files->clone();
      const Outcome outcome =
          saveWith({rank, operation, Fault::Kill}, *files, rig.tensors, rig.mesh, 3);
      met = outcome.met;
      for (uint64_t way = 0; way < 8; ++way) {
        SCOPED_TRACE(fmt::format("rank {} dies before operation {}, way {}", rank, operation, way));
        DrawnChoices drawn(way);
        const auto restarted =
            way < 3 ? files->crashed(static_cast<CrashEnv::Loss>(way)) : files->crashed(drawn);
        const std::vector<int64_t> steps = rig.steps(*restarted);
        EXPECT_TRUE(std::ranges::count(steps, 2) == 1);
        EXPECT_TRUE(steps.back() == 3 || (steps.back() == 2 && !outcome.committed));
        if (operation % 5 == 0 && way < 3)
          rig.expectGoesOn(*restarted);
      }
      if (::testing::Test::HasFailure())
        return;
    }
  }
}

} // namespace
} // namespace titan::checkpoint
