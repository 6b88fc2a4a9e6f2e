// Where a device stands among the ranks of its job.
#pragma once

#include "runtime/collective/Communicator.h"
#include "runtime/program/Program.h"

namespace titan {

struct RankPlace {
  Communicator* communicator = nullptr; ///< outlives the device; null: there are no other ranks
  int64_t rank = 0;                     ///< in the program's mesh

  std::vector<int64_t> coordinates(const Program& program) const {
    return coordinatesOf(rank, program.mesh);
  }
};

/// Internal where the program has collectives and there is no communicator, or one of other ranks.
Status checkPlace(const RankPlace& place, const Program& program);

} // namespace titan
