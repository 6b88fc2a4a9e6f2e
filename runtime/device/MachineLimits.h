// What the machine can do at most, measured in the run that is compared with it.
#pragma once

#include "runtime/program/DType.h"

#include <string>
#include <vector>

namespace titan {

/// Copying between two buffers of together `bytes`.
struct CopySpeed {
  std::string level;         ///< "L2", "L3", "memory": where so many bytes stay
  int64_t capacity = 0;      ///< the largest working set that stays there
  double bytesPerSecond = 0; ///< read + written, by all threads
};

struct MachineLimits {
  double productFlops = 0;       ///< FLOP/s of large products by the library; 0 without one
  std::vector<CopySpeed> copies; ///< the smallest level first; the last one holds everything

  /// The speed of copying `bytes`.
  const CopySpeed& copyOf(int64_t bytes) const;
  /// What `flops` and `bytes` of one call take at least: the longer of the two. Seconds.
  double least(double flops, double bytes) const;
};

} // namespace titan
