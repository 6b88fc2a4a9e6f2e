// The loop over steps of one run that is ready to go: batch in, step, metrics out, evaluations and
// checkpoints in between.
#pragma once

#include "runtime/checkpoint/BackgroundSaver.h"
#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/checkpoint/Snapshot.h"
#include "runtime/checkpoint/WatchedEnv.h"
#include "runtime/job/Batches.h"
#include "runtime/job/Evaluate.h"
#include "runtime/job/RunLog.h"
#include "runtime/job/Scalars.h"
#include "runtime/job/Session.h"
#include "runtime/job/StopSignals.h"
#include "runtime/job/Stragglers.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>

namespace titan {

/// What every checkpoint of the run says beside its state.
struct RunIdentity {
  checkpoint::DataInfo data;
  checkpoint::ProgramInfo program;
  checkpoint::InitInfo init;
};

class Trainer {
public:
  /// The session has been started and its state loaded; `evalData` may be null. Runs the store's
  /// preflight; rank 0 opens the metrics files of the run directory. `files` are the store's.
  static Result<std::unique_ptr<Trainer>>
  create(Session& session, checkpoint::CheckpointStore& store, const checkpoint::WatchedEnv& files,
         std::unique_ptr<Dataset> trainData, std::unique_ptr<Dataset> evalData,
         RunIdentity identity);

  /// To the recipe's last step or a stop signal to any rank, then saves. All ranks make the same
  /// steps. RunFailed: too many skipped steps in a row, a failed save, a lost rank or card.
  Status run();

  int64_t step() const { return step_; }
  float loss() const { return last_.loss; }
  /// "skipped 3 of 100 steps (2 non-finite gradients, 1 no valid targets)"; empty without any.
  std::string skippedSteps() const;
  /// Of the newest checkpoint of this run; empty before the first.
  const std::string& savedPath() const { return savedPath_; }

private:
  Trainer(Session& session, checkpoint::CheckpointStore& store, const checkpoint::WatchedEnv& files,
          Batches batches, RunIdentity identity);

  using Clock = std::chrono::steady_clock;

  Status findScalars();
  Status openLog();
  Status openLoader();
  bool isToStop() const;
  Status runSteps();
  /// With the last step that was told, and what the run can go on from.
  Error located(const Error& error) const;
  void beginSteps();
  /// Hands a step to the device; its metrics come with endStep().
  Status beginStep();
  /// The metrics of the first step that has no metrics yet.
  Status endStep();
  /// endStep() until at most `most` steps have no metrics.
  Status endSteps(int64_t most);
  /// May the step behind the one that is begun be begun before that has metrics?
  bool mayRunAhead() const;
  void noteWaits();
  Status checkSkipped();
  Result<std::string> culprit();
  Status evaluate();
  /// Memory and thread of saves beside the steps, where the recipe wants such saves.
  Status prepareSaves();
  /// A save that falls due between steps.
  Status saveOnTheWay();
  /// The save of the last step, or any where none goes on beside the steps.
  Status saveNow();
  /// Counts, tells and decides on a save that has ended.
  Status endSave(const checkpoint::Saved& saved);
  Status endSaveInFlight();
  /// Ends the process where the save beside the steps is stuck.
  void checkProgress();
  /// The state lies where the device has it, unless `tensors` says otherwise.
  Result<checkpoint::SaveRequest> saveRequest() const;

  Session* session_;
  checkpoint::CheckpointStore* store_;
  const checkpoint::WatchedEnv* files_;
  Batches batches_;
  RunIdentity identity_;
  StopSignals signals_;
  std::optional<Controls> controls_;
  std::optional<Evaluator> evaluator_;
  std::unique_ptr<BatchStream> loader_;
  RunLog log_;
  Scalar loss_, gradNorm_, lr_, stepCounter_, skippedCounter_;
  Scalar stop_, stops_; ///< does this rank ask to stop; how many do. Of more than one rank only
  std::optional<Stragglers> stragglers_; ///< of rank 0, where there are others
  std::vector<double> waited_;           ///< by rank
  StepMetrics last_;
  Clock::time_point
      stepStart_; ///< end of the step before; what a step logs counts for the next one
  Clock::time_point residentRead_; ///< when the resident memory was last asked for
  int64_t begun_ = 0; ///< steps of the run that the device was told of; `step_` have metrics
  int64_t step_ = 0, skipped_ = 0, skippedInARow_ = 0;
  int64_t stepsRun_ = 0;          ///< since this process started; so are the two below
  std::map<Skip, int64_t> skips_; ///< by cause
  int64_t savedStep_ = -1;        ///< the last one that a save was begun for, and did not fail
  std::string savedPath_;
  std::optional<checkpoint::Snapshot> snapshot_;       ///< and `saver_`: of saves beside the steps
  double stallSeconds_ = 0;                            ///< that the save in flight took of the run
  int64_t failedInARow_ = 0;                           ///< saves
  std::unique_ptr<checkpoint::BackgroundSaver> saver_; ///< the last member: it uses the others
};

} // namespace titan
