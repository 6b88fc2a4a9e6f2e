// Memory of a card that is filled with the same bytes again and again, for trials.
#pragma once

#include "runtime/device/cuda/Driver.h"

#include <string_view>

namespace titan::cuda {

/// Writes `block` to `bytes` bytes at `address`, as often as it fits and once in part. `what` is
/// for the error. Returns when the block has been read.
Status fillRepeatedly(const Driver& driver, CUstream stream, CUdeviceptr address, int64_t bytes,
                      std::string_view block, const char* what);

} // namespace titan::cuda
