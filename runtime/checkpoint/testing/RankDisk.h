// Checkpoints of ranks, which are threads, on a file system in memory that they share.
#pragma once

#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/LockedEnv.h"
#include "runtime/checkpoint/testing/MeshState.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace titan::checkpoint {

using Tensor = MeshState::Tensor;
using Mesh = std::vector<MeshAxis>;

/// The run directory of all of these.
inline constexpr const char* runDirectory = "run";
std::string stepPath(int64_t step);

std::string messageOf(const auto& result) { return result.ok() ? "" : result.error().message(); }

/// A file system that ranks share, and what each of them did there.
struct RankDisk {
  explicit RankDisk(std::unique_ptr<CrashEnv> from = std::make_unique<CrashEnv>())
      : files(std::move(from)) {}
  LockedEnv& of(const Peers& peers);

  std::unique_ptr<CrashEnv> files;
  std::mutex mutex, ranksMutex;
  std::map<int64_t, std::unique_ptr<LockedEnv>> ranks;
};

/// What a rank has of a state in which the bytes tell the step.
Status save(const std::vector<Tensor>& tensors, const Mesh& mesh, int64_t step, Peers& peers,
            Env& env, bool hasWindow = true);
/// By all ranks; the test fails where that fails.
void saveOn(RankDisk& disk, const std::vector<Tensor>& tensors, const Mesh& mesh, int64_t step = 1);
/// Loads a step on all ranks; what differs then, or the error, by rank. `isOwn`: each rank loads
/// what it saved.
std::vector<std::string> loadOn(RankDisk& disk, const std::vector<Tensor>& tensors,
                                const Mesh& mesh, int64_t step = 1, bool hasWindow = true,
                                bool isOwn = false);

} // namespace titan::checkpoint
