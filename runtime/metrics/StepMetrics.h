// What one training step reports; the JSON lines, the TensorBoard events and the progress line show
// the same values.
#pragma once

#include <cstdint>
#include <string_view>

namespace titan {

/// Why a step left the state as it was, but for its counters.
enum class Skip { No, NonFiniteGradients, NoValidTargets };

/// "non-finite gradients", "no valid targets"; empty for No.
std::string_view nameOf(Skip skip);

struct StepMetrics {
  int64_t step = 0; ///< 1 for the first
  float loss = 0;   ///< mean over the valid targets of the global batch
  float lr = 0;
  float gradNorm = 0;        ///< before clipping
  int64_t samples = 0;       ///< of this step
  int64_t tokens = 0;        ///< of this step; 0 when the data is not tokens
  double seconds = 0;        ///< wall-clock time of this step
  int64_t memoryBytes = 0;   ///< arena and library workspaces
  int64_t residentBytes = 0; ///< the most that the process had in memory when it was last asked,
                             ///< in the last tenth of a second; 0: not known
  double waitSeconds = 0;    ///< of this step, of the rank that waited longest for others
  int64_t slowestRank = -1;  ///< the one that waited least; -1: there is one rank
  Skip skipped = Skip::No;   ///< the update was
};

} // namespace titan
