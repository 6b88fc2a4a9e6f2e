// How much memory this process really takes.
#pragma once

#include <cstdint>

namespace titan {

/// The most bytes of this process that were in memory at once since it was started (VmHWM of
/// /proc/self/status); 0 where the system does not say. Allocates nothing.
int64_t peakResidentBytes();

} // namespace titan
