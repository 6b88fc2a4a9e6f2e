// What a run tells while it goes on: metrics.jsonl and TensorBoard events in the run directory, and
// the progress line.
#pragma once

#include "runtime/job/Evaluate.h"
#include "runtime/metrics/EventFile.h"
#include "runtime/metrics/MetricsFile.h"
#include "runtime/metrics/Progress.h"

#include <memory>
#include <string>

namespace titan {

/// What one save took.
struct SaveFigures {
  int64_t step = 0;
  int64_t bytes = 0;          ///< written
  double stallSeconds = 0;    ///< that the run waited for
  double writeSeconds = 0;    ///< from its begin to its commit
  double cpuSeconds = 0;      ///< of the thread that saved
  int64_t endedAfterStep = 0; ///< the last step of the run when the save was seen to have ended
};

class RunLog {
public:
  /// Says nothing: of a rank that another one speaks for.
  RunLog() = default;
  /// Of a run that starts at progress.firstStep. Environment when a file cannot be written.
  static Result<RunLog> open(const std::string& directory, const ProgressOptions& progress);

  /// One step; the events get each logEvery-th and the last.
  Status write(const StepMetrics& metrics);
  /// Of the model, or of the averages of `profile`: "eval_loss", "eval_loss_ema_slow".
  Status write(int64_t step, const Evaluation& evaluation, const std::string& profile = "");
  /// A save that goes on, for the progress line (ProgressLine::setSave).
  void showSave(int64_t step, double share);
  void hideSave();
  /// A count of what became of saves: `name` is "save_failures" or "saves_skipped", `step` the one
  /// that is not saved.
  Status write(int64_t step, std::string_view name, int64_t count);
  /// A committed save.
  Status write(const SaveFigures& figures);
  /// A line of its own, above the progress line.
  void note(const std::string& message);
  /// Ends the progress line.
  void finish();

private:
  struct Files {
    ProgressOptions options;
    MetricsFile metrics;
    EventFile events;
    ProgressLine progress;
  };
  std::unique_ptr<Files> files_; ///< null: silent
};

} // namespace titan
