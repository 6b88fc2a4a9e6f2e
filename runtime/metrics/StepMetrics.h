// What one training step reports; the JSON lines, the TensorBoard events and the progress line show
// the same values.
#pragma once

#include <cstdint>

namespace titan {

struct StepMetrics {
  int64_t step = 0; ///< 1 for the first
  float loss = 0;   ///< mean over the valid targets of the global batch
  float lr = 0;
  float gradNorm = 0;        ///< before clipping
  int64_t samples = 0;       ///< of this step
  int64_t tokens = 0;        ///< of this step; 0 when the data is not tokens
  double seconds = 0;        ///< wall-clock time of this step
  int64_t memoryBytes = 0;   ///< arena and library workspaces
  int64_t residentBytes = 0; ///< the most that the process had in memory so far; 0: not known
  bool skipped = false;      ///< the update was skipped: non-finite gradients
};

} // namespace titan
