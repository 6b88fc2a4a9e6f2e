// The checkpoints of one run directory. The store's holders, the ranks of one job, are the only
// writers:
//
//   DIR/.lock                               flock; the holder's pid, and its save (RunListing.h)
//   DIR/checkpoints/step-00000100/          committed: whole, durable, never written again
//     model/shard-00001-model-00001-of-00001.safetensors      parameters and buffers
//     model/model.safetensors.index.json
//     optimizer/shard-00001-model-00001-of-00001.safetensors  slots
//     ema-<profile>/shard-00001-model-00001-of-00001.safetensors  averages (Folders.h)
//     .../shard-<rank + 1>-...              what that rank has of tensors that are cut
//     manifest.json                         counters, data, program, sizes and digests (Manifest.h)
//   DIR/checkpoints/.attempt-*              a save that is under way or cut off; loads ignore it
//   DIR/checkpoints/.doomed-*               a checkpoint that is being deleted; likewise
#pragma once

#include "runtime/checkpoint/Commit.h"
#include "runtime/checkpoint/Env.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/collective/Peers.h"
#include "runtime/device/StateAccess.h"

#include <functional>
#include <optional>
#include <set>

namespace titan::checkpoint {

/// One state tensor, or what a rank has of it, row-major.
struct TensorView {
  std::string name;
  StateKind kind = StateKind::Param;
  std::string profile; ///< of kinds that have one (Folders.h)
  DType dtype = DType::F32;
  Shape shape;             ///< of the whole
  ByteSource source;       ///< bytes() bytes
  std::optional<Box> box;  ///< what the source is of it; nothing: the whole
  bool isWritten = true;   ///< by this rank, where a checkpoint is saved
  bool isBorrowed = false; ///< whose the source is waits until it was read (PlannedSave::onRead)

  const Shape& extent() const { return box ? box->extent : shape; }
  int64_t bytes() const { return elementCount(extent()) * byteSize(dtype); }
};

/// A tensor of a checkpoint, and the state that it is saved from.
struct SavedState {
  const State* state = nullptr;
  std::string copyFor; ///< a profile whose folder has the state once more; empty: the state itself
};

/// Of all state but counters, then of what makes the folder of each profile a whole model: states
/// of the model that have no average there.
std::vector<SavedState> savedStates(const Program& program);
/// What the rank at `coordinates` has of `saved`, without its bytes.
TensorView viewOf(const SavedState& saved, std::span<const MeshAxis> mesh,
                  std::span<const int64_t> coordinates);
/// The savedStates() of a program: what this rank has of them. Of ranks that have the same
/// box, the one at coordinate 0 of all axes that do not cut the state writes it: each byte once.
std::vector<TensorView> tensors(StateAccess& access);
/// The counters' values now. The errors of the device.
Result<Counters> counters(StateAccess& access);

/// Alike on all ranks, but for the tensors.
struct SaveRequest {
  int64_t step = 0;
  std::vector<TensorView> tensors;
  Counters counters;
  DataInfo data;
  ProgramInfo program;
  InitInfo init;
};

/// What one save says beside its plan (SavePlan.h). Alike on all ranks.
struct PlannedSave {
  int64_t step = 0;
  Counters counters;
  /// Called by the thread that saves when it needs the source of a tensor no more.
  std::function<void(const TensorView&)> onRead = {};
  /// Called by the thread that saves before it reads a tensor; an error fails the save.
  std::function<Status()> beforeRead = {};
};

class SavePlan;

struct SaveReport {
  std::string path;  ///< DIR/checkpoints/step-00000100
  int64_t bytes = 0; ///< written by all ranks; 0 when alreadyCommitted
  double seconds = 0;
  bool alreadyCommitted = false;
  std::vector<std::string> notes; ///< an old checkpoint that could not be deleted
};

/// Which checkpoints stay behind a newer one.
struct Retention {
  Retention(int64_t newest) : keep(newest) {}
  int64_t keep;              ///< the newest ones; 0: all
  int64_t keepEvery = 0;     ///< those of steps that it divides stay for good and are not counted
  std::set<int64_t> inUse{}; ///< steps whose checkpoints stay until a later commit

  bool isForGood(int64_t step) const { return keepEvery > 0 && step % keepEvery == 0; }
};

/// What preflight writes of tensors.
enum class Probe : uint8_t {
  Chunk, ///< a few KiB of each file
  Whole, ///< all of them, as a save does
};

struct CheckpointInfo {
  int64_t step = 0;
  std::string path;
};

/// "step-00000100"
std::string stepName(int64_t step);
/// The step of a name that stepName gives; nothing for any other.
std::optional<int64_t> parseStepName(const std::string& name);
/// "DIR/checkpoints"
std::string checkpointsPath(const std::string& directory);

/// Committed checkpoints of a run directory, oldest first; empty if it has none or does not exist.
/// Takes no lock.
Result<std::vector<CheckpointInfo>> listCheckpoints(Env& env, const std::string& directory);

class CheckpointStore {
public:
  /// Makes `directory` if it is not there, locks it and removes what cut-off saves left.
  /// Environment: not writable, or locked; the latter names the holder's pid.
  static Result<CheckpointStore> open(const std::string& directory, Env& env = posixEnv());
  /// The same by rank 0 for all ranks of a job. `peers` outlives the store.
  static Result<CheckpointStore> open(const std::string& directory, Peers& peers,
                                      Env& env = posixEnv());

  /// Commits a checkpoint, then deletes older ones as `retention` says. What a load holds is left
  /// to the next commit. Every rank calls it and writes what is its part; an error of one is the
  /// error of all, with its number. RunFailed names the cause; everything committed before is as it
  /// was.
  Result<SaveReport> save(const SavePlan& plan, const PlannedSave& save,
                          const Retention& retention);
  /// The same of a save that comes once.
  Result<SaveReport> save(const SaveRequest& request, const Retention& retention);
  /// For saves without a preflight. The errors of SavePlan::of, of any rank.
  Result<SavePlan> plan(const SaveRequest& request);

  // Of these, rank 0 alone calls what changes the directory.

  Result<std::vector<CheckpointInfo>> list() const;
  /// The newest committed checkpoint.
  Result<std::optional<CheckpointInfo>> latest() const;

  /// Where a run continues from `step` although later checkpoints exist, those belong to another
  /// future: they are renamed to aside-step-*, which nothing reads or deletes. Returns their new
  /// paths.
  Result<std::vector<std::string>> setAsideAfter(int64_t step);

  /// Before step 1: would a save work? Checks what stands at the names of later steps, the room for
  /// as many checkpoints of the request's size as stay and one more, every name, header, table and
  /// the manifest: the whole protocol is run on all that a save writes but the tensors' bytes, of
  /// which it writes what `probe` says, and everything is read back. Every rank calls it. What was
  /// tried is the plan of the saves to come. Environment: path and cause.
  Result<SavePlan> preflight(const SaveRequest& request, const Retention& retention,
                             Probe probe = Probe::Chunk);

  /// Of a run that is refused before it begins: removes what open made, as far as nothing else
  /// stands in it.
  void takeBack();

  /// Did a sync fail after which nobody knows what is on the disk? Every later save fails.
  bool isBroken() const { return broken_.has_value(); }

  const std::string& directory() const { return directory_; }

private:
  CheckpointStore(std::string directory, Env& env, std::unique_ptr<FileLock> lock);

  Result<SaveReport> commit(const SavePlan& plan, const PlannedSave& save);
  /// Says in the lock what is saved, or that nothing is.
  void tellSave(int64_t step, int64_t bytes);
  void tellNoSave();
  /// Of rank 0: the attempt, or nothing where the step is committed already.
  Result<std::optional<Attempt>> begin(const SavePlan& plan, int64_t step);
  Status publish(Attempt& attempt, std::string_view manifest, int64_t step);
  Result<SavePlan> checkAll(const SaveRequest& request, const Retention& retention, Probe probe);
  /// Committed checkpoints up to step `newest` that retention counts, oldest first.
  Result<std::vector<CheckpointInfo>> counted(int64_t newest, const Retention& retention) const;
  Status retire(int64_t newest, const Retention& retention);
  Status syncParent();

  std::string directory_;
  Env* env_;
  std::unique_ptr<Peers> alone_; ///< where there are no others
  Peers* peers_;
  std::unique_ptr<FileLock> lock_;
  std::vector<std::string> made_; ///< by open, what stands in another before that
  /// Set when a directory could not be synced after a rename: what is durable is unknown, so
  /// nothing more is written.
  std::optional<Error> broken_;
};

} // namespace titan::checkpoint
