// What all saves of a run have in common, made once: which file has which tensors, what stands in
// it besides their bytes, and what a manifest says of the run. A save formats its step, its
// counters and its digests, and allocates as much for a thousand tensors as for one.
//
//   SavePlan plan = TITAN_TRY(store.preflight(request, retention));
//   TITAN_TRY(store.save(plan, {step, counters}, retention));
#pragma once

#include "runtime/checkpoint/WriteState.h"

namespace titan::checkpoint {

class SavePlan {
public:
  /// Of saves as `request` describes one: what `rank` writes, and the counters' names. Internal:
  /// the table does not describe the tensors and counters; BadInput: a name that a checkpoint
  /// cannot hold.
  static Result<SavePlan> of(const SaveRequest& request, int64_t rank);
  SavePlan(SavePlan&&) = default;
  SavePlan& operator=(SavePlan&&) = default;

  /// Later saves read the same tensors from other places. Internal: these are not the same.
  Status readFrom(const std::vector<TensorView>& tensors);
  /// Internal: the counters are not the plan's.
  Status checkCounters(const Counters& counters) const;

  const std::vector<FolderPlan>& folders() const { return folders_; }
  /// What makes the plan's checkpoints those of one program.
  const std::string& fingerprint() const { return fingerprint_; }
  /// Of all tensors, on all ranks.
  int64_t tensorBytes() const;
  /// Tensors that this rank writes and does not own.
  int64_t borrowed() const;
  /// manifest.json of a save that wrote `files`.
  std::string manifest(const PlannedSave& save, const std::vector<FileRecord>& files) const {
    return manifest_.format(save.step, save.counters, files);
  }

private:
  SavePlan(std::vector<TensorView> tensors, const Counters& counters, const Manifest& manifest);
  void gatherPieces();

  std::vector<TensorView> tensors_; ///< where they are: the folders point to them
  std::vector<FolderPlan> folders_;
  Counters counters_; ///< their names
  std::string fingerprint_;
  ManifestText manifest_;
};

} // namespace titan::checkpoint
