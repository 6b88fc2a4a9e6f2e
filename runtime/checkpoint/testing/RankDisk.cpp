#include "runtime/checkpoint/testing/RankDisk.h"

#include "runtime/checkpoint/Load.h"
#include "runtime/checkpoint/LoadBlocks.h"
#include "runtime/collective/testing/RankThreads.h"

#include <gtest/gtest.h>

namespace titan::checkpoint {

using titan::testing::onRanks;

std::string stepPath(int64_t step) {
  return joinPath(checkpointsPath(runDirectory), stepName(step));
}

LockedEnv& RankDisk::of(const Peers& peers) {
  const std::lock_guard lock(ranksMutex);
  auto& env = ranks[peers.rank()];
  if (!env)
    env = std::make_unique<LockedEnv>(*files, mutex);
  return *env;
}

Status save(const std::vector<Tensor>& tensors, const Mesh& mesh, int64_t step, Peers& peers,
            Env& env, bool hasWindow) {
  MeshState state(tensors, mesh, peers.rank(), hasWindow);
  state.fill(static_cast<uint8_t>(step));
  auto store = TITAN_TRY(CheckpointStore::open(runDirectory, peers, env));
  TITAN_TRY(store.save(state.saveRequest(step), 2));
  return {};
}

void saveOn(RankDisk& disk, const std::vector<Tensor>& tensors, const Mesh& mesh, int64_t step) {
  for (const std::string& error : onRanks(rankCount(mesh), [&](Peers& peers) {
         return messageOf(save(tensors, mesh, step, peers, disk.of(peers)));
       }))
    EXPECT_EQ(error, "");
}

std::vector<std::string> loadOn(RankDisk& disk, const std::vector<Tensor>& tensors,
                                const Mesh& mesh, int64_t step, bool hasWindow, bool isOwn) {
  return onRanks(rankCount(mesh), [&](Peers& peers) {
    MeshState state(tensors, mesh, peers.rank(), hasWindow);
    state.fill(255);
    auto report = load(stepPath(step), state.loadRequest(&peers), disk.of(peers));
    if (!report.ok())
      return report.error().message();
    EXPECT_EQ(report->manifest.step, step);
    if (isOwn)
      EXPECT_EQ(peers.traffic(loadName), ownLoadTraffic(state.program(), peers.rank()).take());
    return state.differing(static_cast<uint8_t>(step));
  });
}

} // namespace titan::checkpoint
