// One rank of a job alone, without the others: to measure memory and kernels of any mesh. What it
// computes is of no use.
#pragma once

#include "runtime/collective/CommDelay.h"
#include "runtime/collective/Communicator.h"

#include <memory>

namespace titan {

/// Never waits for anybody, but as long as `delay` says. A collective fills its results as if all
/// ranks had what this one has, without adding: the same bytes in each run. An exchange brings this
/// rank's message for all. It moves nothing, and counts the payload.
std::unique_ptr<Communicator> connectNull(int64_t rank, int64_t ranks, const CommDelay& delay = {});

} // namespace titan
