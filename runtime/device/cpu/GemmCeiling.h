// What this machine can do: the speed of large products, which a run's own speed is measured
// against (MFU).
#pragma once

#include "runtime/device/cpu/OneDnn.h"

#include <optional>

namespace titan {

/// FLOP/s of the product library on all threads of `pool` for `operands` (F32 or BF16), square
/// tiles from cache; where it has no bf16 products for the CPU, of F32, in which such a CPU
/// computes them. Takes some tens of milliseconds. 0 without the library.
double measureGemmCeiling(const std::optional<OneDnn>& oneDnn, ThreadPool& pool, DType operands);

} // namespace titan
