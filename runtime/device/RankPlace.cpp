#include "runtime/device/RankPlace.h"

namespace titan {

Status checkPlace(const RankPlace& place, const Program& program) {
  const int64_t ranks = rankCount(program.mesh);
  const Communicator* communicator = place.communicator;
  if (!communicator && !program.collectives.empty())
    return Error::internal("the program exchanges with {} ranks, its device has no communicator",
                           ranks);
  if (communicator && (communicator->ranks() != ranks || communicator->rank() != place.rank))
    return Error::internal("the program is for {} ranks, its device is rank {} with a communicator "
                           "of rank {} of {}",
                           ranks, place.rank, communicator->rank(), communicator->ranks());
  return {};
}

} // namespace titan
