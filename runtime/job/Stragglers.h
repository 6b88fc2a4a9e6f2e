// Which rank of a job holds the others up: it waits least.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace titan {

/// Looks at the seconds that each rank has waited for others since the job began; a rank publishes
/// them without being asked, so the last of them may count for the next step.
class Stragglers {
public:
  static constexpr int64_t window = 20; ///< steps that a verdict rests on
  static constexpr double limit = 1.3;  ///< of the median time that ranks compute

  struct Step {
    double waitSeconds = 0;  ///< of the rank that waited longest
    int64_t slowestRank = 0; ///< waited least; the lowest of equals
  };

  explicit Stragglers(int64_t ranks);

  /// A step begins; what was waited for before, as in a save, is not its own. `waited`: by rank.
  void begin(std::span<const double> waited);
  /// The step that began there took `seconds`. The next one begins.
  Step end(double seconds, std::span<const double> waited);
  /// After a window in which a rank computed for more than `limit` x the median: "rank 3 computes
  /// 1.52 x as long as the median rank over 20 steps (0.91 s of 0.60 s a step): ...". Once a rank,
  /// until it keeps up.
  std::optional<std::string> verdict();

private:
  std::vector<double> before_;  ///< waited when the step began
  std::vector<double> waited_;  ///< in this window
  std::vector<double> compute_; ///< scratch
  std::vector<bool> isTold_;
  double seconds_ = 0; ///< of this window
  int64_t steps_ = 0;
};

} // namespace titan
