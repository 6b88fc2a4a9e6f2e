// What a rank did last: the collectives that its slot of the control block remembers.
//
// Recording is a few stores at start and wait, without allocation or a lock. It is read when ranks
// have ended, or stand still.
#pragma once

#include "runtime/collective/ControlBlock.h"

#include <string>
#include <vector>

namespace titan {

/// A collective that a rank has started. Times are nanoseconds of the host's monotonic clock, 0: it
/// has not come so far.
struct Flight {
  uint64_t number = 0;     ///< collectives that the rank had started before
  uint32_t collective = 0; ///< index in the program
  int64_t step = -1;       ///< in which; -1: before the first
  std::string name;        ///< "reduce_scatter of blocks.3"
  int64_t started = 0, waited = 0, done = 0;
};

/// The last RankSlot::records collectives of a rank, oldest first.
std::vector<Flight> flightsOf(const ControlBlock& block, int64_t rank);

} // namespace titan
