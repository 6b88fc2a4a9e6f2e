// Ranks that are threads of one process: for tests, and to run a program on many ranks under a
// debugger.
#pragma once

#include "runtime/collective/CommDelay.h"
#include "runtime/collective/Communicator.h"
#include "runtime/host/ThreadPool.h"

#include <memory>
#include <span>
#include <vector>

namespace titan {

/// One communicator a rank, each for a thread of its own. Copies and sums of rank r run on
/// pools[r], which outlives it, or without pools on that thread. Environment without memory.
Result<std::vector<std::unique_ptr<Communicator>>>
connectInProcess(int64_t ranks, std::span<ThreadPool* const> pools = {},
                 const CommDelay& delay = {});

} // namespace titan
