// The loop over steps of one run that is ready to go: batch in, step, metrics out, evaluations and
// checkpoints in between.
#pragma once

#include "runtime/job/Batches.h"
#include "runtime/job/Evaluate.h"
#include "runtime/job/RunLog.h"
#include "runtime/job/Saves.h"
#include "runtime/job/Scalars.h"
#include "runtime/job/Session.h"
#include "runtime/job/StopSignals.h"
#include "runtime/job/Stragglers.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace titan {

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
  const std::string& savedPath() const { return saves_.newestPath(); }

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
  /// Of the steps that have metrics: those that were not skipped.
  int64_t updates() const { return step_ - skipped_; }
  /// Would the step that is begun be an update that averages of ema.profiles follow, those of an
  /// interval above 1?
  bool mayMoveAverages() const;
  /// Behind a step that was an update.
  Status moveAverages();
  /// May the step behind the one that is begun be begun before that has metrics?
  bool mayRunAhead() const;
  void noteWaits();
  Status checkSkipped();
  Result<std::string> culprit();
  /// The model, then each profile of train.eval_ema; the state is the same afterwards.
  Status evaluate();

  Session* session_;
  checkpoint::CheckpointStore* store_;
  Batches batches_;
  StopSignals signals_;
  std::optional<Controls> controls_;
  std::optional<Evaluator> evaluator_;
  std::unique_ptr<BatchStream> loader_;
  RunLog log_;
  Saves saves_; ///< tells in `log_`
  Scalar loss_, gradNorm_, lr_, stepCounter_, skippedCounter_;
  Scalar stop_, stops_; ///< does this rank ask to stop; how many do. Of more than one rank only
  std::optional<Stragglers> stragglers_; ///< of rank 0, where there are others
  std::vector<double> waited_;           ///< by rank
  std::set<int64_t> averageIntervals_;   ///< EmaRecipe::intervals()
  StepMetrics last_;
  Clock::time_point
      stepStart_; ///< end of the step before; what a step logs counts for the next one
  Clock::time_point residentRead_; ///< when the resident memory was last asked for
  int64_t begun_ = 0; ///< steps of the run that the device was told of; `step_` have metrics
  int64_t step_ = 0, skipped_ = 0, skippedInARow_ = 0;
  int64_t stepsRun_ = 0;          ///< since this process started; so are the two below
  std::map<Skip, int64_t> skips_; ///< by cause
};

} // namespace titan
