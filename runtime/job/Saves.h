// The saves of one run: when they wait, what they take, and what becomes of one that fails.
#pragma once

#include "runtime/checkpoint/BackgroundSaver.h"
#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/checkpoint/SavePlan.h"
#include "runtime/checkpoint/Snapshot.h"
#include "runtime/checkpoint/WatchedEnv.h"
#include "runtime/job/CommitHooks.h"
#include "runtime/job/RunLog.h"
#include "runtime/job/Session.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace titan {

/// What every checkpoint of the run says beside its state.
struct RunIdentity {
  checkpoint::DataInfo data;
  checkpoint::ProgramInfo program;
  checkpoint::InitInfo init;
};

/// Where a run that fails could go on from: "the newest checkpoint is run/checkpoints/step-..."
std::string describeNewest(const checkpoint::CheckpointStore& store);

class Saves {
public:
  /// All outlive the object; `files` are the store's. `log` is opened later.
  Saves(Session& session, checkpoint::CheckpointStore& store, const checkpoint::WatchedEnv& files,
        RunLog& log, RunIdentity identity);

  /// Plans the saves of the run, and tries one, of `step`, as far as the recipe says.
  Status preflight(int64_t step);
  /// Behind preflight(): memory and thread of saves beside the steps, where the recipe wants such
  /// saves. `savedStep` is saved already; -1: none is. Environment: the memory that the recipe
  /// names is not there.
  Status prepare(int64_t savedStep);

  /// The state is that of `step`, and more steps follow: saves it, or begins to.
  Status begin(int64_t step);
  /// After a step: what became of the save in flight. RunFailed: it failed, and the run is to end.
  Status look(int64_t step);
  /// The same, and waits for it.
  Status await(int64_t step) { return await(step, /*isLast=*/false); }
  /// The state is that of the last step: saves it, unless it is saved.
  Status finish(int64_t step);

  /// Of the newest checkpoint of this run; empty before the first.
  const std::string& newestPath() const { return newestPath_; }

private:
  const CheckpointRecipe& recipe() const { return session_->recipe().checkpoint; }
  checkpoint::Retention retention() const;
  /// Of the state as the device has it.
  Result<checkpoint::SaveRequest> request(int64_t step);
  /// Memory for copies of the state, `bytes` in all, of what is available. Notes what is less than
  /// the recipe says.
  Result<int64_t> staging(int64_t bytes) const;
  /// Leaves the save of `step` out.
  Status skip(int64_t step);
  /// The save in flight is not done when the next one is due: said once.
  void noteSlowness();
  /// Before the state changes: waits for the save in flight to read what it has no copy of, and has
  /// the device wait for copies that it still makes.
  void passGate();
  Status await(int64_t step, bool isLast);
  Status saveNow(int64_t step, bool isLast);
  /// Counts, tells and decides on a save that has ended; `step` is the run's.
  Status end(const checkpoint::Saved& saved, int64_t step, bool isLast);
  /// Ends the process where the save in flight is stuck.
  void checkProgress() const;
  /// Where the run could go on from, and how.
  std::string describeRestart() const;

  Session* session_;
  checkpoint::CheckpointStore* store_;
  const checkpoint::WatchedEnv* files_;
  RunLog* log_;
  RunIdentity identity_;   ///< until the plan has it
  int64_t savedStep_ = -1; ///< the last one that a save was begun for and did not fail
  int64_t failedInARow_ = 0;
  int64_t failures_ = 0, skipped_ = 0;          ///< of this process
  std::chrono::steady_clock::time_point begun_; ///< of the last save beside the steps
  bool isSlownessTold_ = false, isFinishing_ = false;
  int64_t writtenBefore_ = 0; ///< bytes, when it began
  double stallSeconds_ = 0;   ///< that the run waited for the last save
  std::string newestPath_;
  std::optional<checkpoint::SavePlan> plan_;
  std::optional<CommitHooks> hooks_;                   ///< of rank 0, where there is a command
  std::optional<checkpoint::Snapshot> snapshot_;       ///< of saves beside the steps
  std::unique_ptr<checkpoint::BackgroundSaver> saver_; ///< likewise; the last: it uses the others
};

} // namespace titan
