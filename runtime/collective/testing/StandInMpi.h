// An MPI whose ranks are threads of this process, for tests of what uses one.
#pragma once

#include "runtime/collective/mpi/Shim.h"

#include <cstdint>
#include <memory>

namespace titan::testing {

/// The ranks of one job. It outlives their communicators.
class StandInMpi {
public:
  explicit StandInMpi(int64_t ranks);
  ~StandInMpi();
  StandInMpi(const StandInMpi&) = delete;
  StandInMpi& operator=(const StandInMpi&) = delete;

  /// The calling thread is a rank from here on.
  void enter(int64_t rank);
  /// What it calls. Every operation waits for all of its group; ranks that call different ones get
  /// an error.
  static const titan_mpi_shim& shim();

private:
  friend struct StandInRank;
  struct World;
  std::unique_ptr<World> world_;
};

} // namespace titan::testing
