// What a kernel.fused means, computed point by point in f64 straight from the op's description: the
// yardstick of the emitter's tests.
#pragma once

#include "dialects/Kernel/Kernel.h"

#include <span>
#include <vector>

namespace titan::codegen::testing {

/// A buffer's elements as f64, row-major, whatever its element type.
using Elements = std::vector<double>;

/// The contents of `outs` after the kernel, given those of ins and outs before it.
std::vector<Elements> evaluateFused(kernel::FusedOp op, std::span<const Elements> ins,
                                    std::vector<Elements> outs, std::span<const int64_t> scalars);

} // namespace titan::codegen::testing
