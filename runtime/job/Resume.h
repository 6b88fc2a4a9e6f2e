// Which checkpoint a command starts from.
#pragma once

#include "runtime/checkpoint/Load.h"
#include "runtime/job/CommandLine.h"
#include "runtime/job/Session.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace titan {

/// Where a run starts. `manifest` is missing for a fresh run, and for a damaged newest checkpoint,
/// which is reported when it is loaded.
struct Start {
  std::string checkpoint; ///< empty: a fresh run
  bool newest = false;    ///< of the run directory, not named by the user
  std::optional<checkpoint::Manifest> manifest;
  /// Keeps a run that goes on in that directory from deleting it; needed until it is loaded.
  std::unique_ptr<checkpoint::FileLock> hold;
  /// The run directory's checkpoints after this step are set aside once the start is loaded.
  std::optional<int64_t> setAsideAfter;
  std::vector<std::string> damage; ///< what is wrong with some of these

  /// A fresh run needs its first weights.
  FirstState firstState() const {
    return checkpoint.empty() ? FirstState::Weights : FirstState::Open;
  }
  /// Of a start from a checkpoint; `directory` is the run's. The errors of checkpoint::load and
  /// checkpoint::loadLatest.
  Result<checkpoint::LoadReport> load(const std::string& directory,
                                      const checkpoint::LoadRequest& request) const;
  /// What computed products and attention on `target` in the run that is continued.
  SavedProducts products(const std::string& target) const;
};

/// A checkpoint, or the newest one of a run directory. BadInput when `path` is neither.
Result<std::string> resolveCheckpoint(const std::string& path);

/// --resume of `train`. Usage: `never` where there are checkpoints, a PATH with newer ones already
/// in the directory and no --set-aside. BadInput: `good` where all checkpoints are damaged.
Result<Start> chooseStart(const JobOptions& options, const checkpoint::CheckpointStore& store);

/// --ckpt of `eval` and `predict`; without one the newest of the run directory, or a fresh start
/// with a note.
Result<Start> chooseForReading(const JobOptions& options);

/// What rank 0 chooses, on all ranks; what is to be set aside stays with rank 0. Usage, naming a
/// rank that finds another checkpoint at that path.
Result<Start> chooseTogether(Peers& peers, const std::function<Result<Start>()>& choose);

} // namespace titan
