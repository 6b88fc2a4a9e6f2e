#include "runtime/device/cpu/Exchange.h"

namespace titan {

Result<Exchange> Exchange::create(const Program& program, const RankPlace& place, char* arena) {
  TITAN_TRY(checkPlace(place, program));
  Exchange exchange;
  exchange.communicator_ = place.communicator;
  exchange.tickets_.resize(program.collectives.size());
  if (place.communicator) {
    TITAN_TRY(place.communicator->setCollectives(program.collectives, program.mesh));
    TITAN_TRY(place.communicator->shareStaging(
        {arena + program.stagingOffset, static_cast<size_t>(program.stagingBytes)}));
  }
  return exchange;
}

} // namespace titan
