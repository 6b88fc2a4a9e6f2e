#include "runtime/device/MachineLimits.h"

#include <algorithm>

namespace titan {

const CopySpeed& MachineLimits::copyOf(int64_t bytes) const {
  for (const CopySpeed& copy : copies)
    if (bytes <= copy.capacity)
      return copy;
  return copies.back();
}

double MachineLimits::least(double flops, double bytes) const {
  const double memory = bytes / copyOf(static_cast<int64_t>(bytes)).bytesPerSecond;
  return productFlops > 0 ? std::max(memory, flops / productFlops) : memory;
}

} // namespace titan
