#include "runtime/collective/FlightRecorder.h"

#include <algorithm>

namespace titan {

std::vector<Flight> flightsOf(const ControlBlock& block, int64_t rank) {
  const RankSlot& slot = block.slot(rank);
  const uint64_t count = slot.recorded.load(std::memory_order_acquire);
  std::vector<Flight> flights;
  for (uint64_t number = count - std::min<uint64_t>(count, RankSlot::records); number < count;
       ++number) {
    const FlightRecord& record = slot.recorder[number % RankSlot::records];
    flights.push_back({number, record.collective, record.step, record.name.load(), record.started,
                       record.waited, record.done});
  }
  return flights;
}

} // namespace titan
