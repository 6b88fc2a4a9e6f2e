// Packing of buffers with known lifetimes into one region.
#pragma once

#include <cstdint>
#include <vector>

namespace titan::memory {

/// A buffer that is live at the commands first ... last, both included.
struct Interval {
  int64_t bytes = 0;
  uint32_t first = 0, last = 0;
};

struct Packing {
  std::vector<int64_t> offsets; ///< one per interval, multiples of the alignment
  int64_t bytes = 0;            ///< the highest end: what the region needs
};

/// The largest sum of bytes (each rounded up to `alignment`) that are live at one command: no
/// packing needs less.
int64_t maxLive(const std::vector<Interval>& intervals, int64_t alignment);

/// Offsets such that intervals which share a command share no byte. Best fit in three orders (by
/// size, by lifetime, by size times lifetime), each interval into the smallest gap between those
/// already placed that are live with it; the tightest of the three wins. If that is not within 0.5
/// % of maxLive, what ends highest is placed earlier, a bounded number of times. Deterministic.
Packing pack(const std::vector<Interval>& intervals, int64_t alignment);

} // namespace titan::memory
