// What this machine can do: the speed of large products, which a run's own speed is measured
// against (MFU).
#pragma once

#include "runtime/device/cpu/OneDnn.h"

#include <optional>

namespace titan {

/// FLOP/s of the product library on all threads of `pool`, f32, square tiles from cache. Takes a
/// few milliseconds. 0 without the library.
double measureGemmCeiling(const std::optional<OneDnn>& oneDnn, ThreadPool& pool);

} // namespace titan
