// metrics.jsonl: one JSON object a line, one line a step (keys: step loss lr grad_norm
// samples|tokens seconds memory resident, and skipped when the update was) or an evaluation (keys:
// step eval_loss ...).
#pragma once

#include "runtime/metrics/StepMetrics.h"
#include "runtime/program/Error.h"
#include "runtime/program/File.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace titan {

/// Numbers are written in the shortest form that reads back to the same value; NaN and infinities
/// as null.
using MetricValue = std::variant<int64_t, float, double>;
using Metric = std::pair<std::string_view, MetricValue>;

class MetricsFile {
public:
  /// Opens `path` to append, after dropping what a run that is now resumed at `resumedStep` (0:
  /// from the start) wrote past its checkpoint: every line whose "step" is larger, and a last line
  /// without its newline. Fails with Environment when the file cannot be written.
  static Result<MetricsFile> open(const std::string& path, int64_t resumedStep);

  Status write(const StepMetrics& metrics);
  /// {"step": step, ...metrics}, for evaluations.
  Status write(int64_t step, std::span<const Metric> metrics);

private:
  MetricsFile(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}
  Status writeLine();

  Descriptor descriptor_;
  std::string path_;
  std::string line_; ///< reused: nothing is allocated once it has its size
};

} // namespace titan
