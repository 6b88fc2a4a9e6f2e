// What this CPU can do at most: products by the library, and copies at each level of its memory.
#pragma once

#include "runtime/device/MachineLimits.h"
#include "runtime/device/cpu/OneDnn.h"

#include <optional>

namespace titan {

/// On all threads of `pool`, products of `operands`; takes some tenths of a second and, meanwhile,
/// some hundred MB.
MachineLimits measureCpuLimits(const std::optional<OneDnn>& oneDnn, ThreadPool& pool,
                               DType operands);

} // namespace titan
