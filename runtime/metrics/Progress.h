// The progress line of a training run: refreshed in place on a terminal, plain lines at a sane rate
// elsewhere.
#pragma once

#include "runtime/metrics/StepMetrics.h"

#include <cstdint>
#include <cstdio>
#include <string>

namespace titan {

struct ProgressOptions {
  int64_t firstStep = 0;    ///< steps done before this run started
  int64_t steps = 0;        ///< the run's last step
  int64_t logEvery = 1;     ///< recipe key train.log_every; the last step is always shown
  int64_t flopsPerStep = 0; ///< Function::modelFlops of the step; 0: unknown, no MFU
  double peakFlops = 0;     ///< FLOP/s of all ranks together; 0: unknown, no MFU
};

class ProgressLine {
public:
  /// `stream` is usually stderr. On a terminal the line is refreshed at most ten times a second;
  /// elsewhere a line is printed every logEvery steps, but at most one a second.
  ProgressLine(std::FILE* stream, ProgressOptions options);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void update(const StepMetrics& metrics);
  /// Later lines end with "ckpt 200 64%": the checkpoint of `step` is being written, `share` in
  /// [0, 1] of it is done.
  void setSave(int64_t step, double share);
  /// No more.
  void clearSave() { save_.clear(); }
  /// Prints `message` on a line of its own, above the progress line.
  void note(const std::string& message);
  /// Ends the refreshed line; called by the destructor.
  void finish();

  /// "step 120/1000  loss 0.4312  lr 1.0e-03  grad 1.24  52.1k samples/s  MFU 41%  mem 12.0 MiB eta
  /// 0:42", and "skipped 3: non-finite gradients" from the first skipped step on; then the save.
  std::string format(const StepMetrics& metrics) const;

private:
  void show(std::string line);

  std::FILE* stream_;
  ProgressOptions options_;
  bool terminal_;
  double lastShown_ = -1e9;   ///< seconds, monotonic
  double secondsPerStep_ = 0; ///< moving average
  int64_t skippedSteps_ = 0;  ///< of this run
  Skip lastSkip_ = Skip::No;
  std::string save_;      ///< empty: none goes on
  size_t shownWidth_ = 0; ///< of the line that now stands on the terminal
};

} // namespace titan
