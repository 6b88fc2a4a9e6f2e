// Collectives that take longer than they do: to measure on one machine what overlap hides.
#pragma once

#include "runtime/program/Error.h"

#include <cstdint>
#include <string_view>

namespace titan {

/// A collective is not done before the last rank of its group has started it + latency +
/// wire / rate. None by default.
struct CommDelay {
  int64_t latency = 0;       ///< nanoseconds
  double bytesPerSecond = 0; ///< 0: any number

  bool isNone() const { return latency == 0 && bytesPerSecond == 0; }
  /// Of a collective that puts `wire` bytes of each rank on the wire.
  int64_t nanoseconds(int64_t wire) const;
};

/// "50us,2GB/s": a latency in s, ms, us or ns, and a rate in B/s, kB/s, MB/s or GB/s. Usage, with
/// the text, for anything else.
Result<CommDelay> parseCommDelay(std::string_view text);

/// Nanoseconds of the monotonic clock, which is the same for all processes of a host.
int64_t monotonicNow();
void sleepUntil(int64_t monotonicNanoseconds);

} // namespace titan
