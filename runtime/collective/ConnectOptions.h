// What a rank brings when it joins the others.
#pragma once

#include "runtime/collective/CommDelay.h"
#include "runtime/host/ThreadPool.h"

#include <cstdint>

namespace titan {

/// How long a rank that gets nothing done may let others wait, in seconds; 0: for ever.
struct WaitLimits {
  int64_t warnAfter = 30;  ///< then a note says who waits for whom
  int64_t killAfter = 600; ///< then the job fails
};

struct ConnectOptions {
  ThreadPool* pool = nullptr; ///< for copies and sums, outlives the communicator; null: the caller
  WaitLimits limits = {};
  CommDelay delay = {};
};

} // namespace titan
