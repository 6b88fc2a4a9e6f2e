// Ranks that reach each other by MPI, on one host or several.
//
// MPI moves parts, we add: the same routine and order as in shared memory, so the same bits. Each
// rank packs lines of its sources into slots, one a member of the group, and MPI_Ialltoall or
// MPI_Iallgather brings the slots to the others; what is larger than the slots goes by rounds. So
// the memory it takes does not grow with the operand. All bytes move in wait().
//
// What ranks know of each other, as beats, waits and failures, goes beside MPI (Relay.h).
#pragma once

#include "runtime/collective/Communicator.h"
#include "runtime/collective/ConnectOptions.h"
#include "runtime/collective/ControlBlock.h"
#include "runtime/collective/mpi/Shim.h"

#include <functional>
#include <memory>
#include <string>

namespace titan {

struct MpiOptions {
  const titan_mpi_shim* shim = nullptr;
  std::string library;  ///< for messages: "Open MPI"
  std::string launcher; ///< that started the ranks, for messages: "MPICH's mpirun"
  int64_t rank = 0;     ///< as the launcher says
  int64_t ranks = 1;
  bool isCrowded = false; ///< there are more ranks than CPUs on this host
  /// Writes what this rank did last, after a failure; `tells`: and says where.
  std::function<void(const ControlBlock& block, bool tells)> record;
  /// Ends the process where the job has failed and it does not end by itself.
  std::function<void(int code)> end;
};

/// Joins the ranks. The calling thread makes all calls of the communicator, but those that any
/// thread may make. Once a process, since MPI starts once. Environment where MPI does not start or
/// knows another number of ranks than the launcher, or ranks cannot reach rank 0 by TCP. Usage
/// where `connect.delay` is set.
Result<std::unique_ptr<Communicator>> connectMpi(const MpiOptions& options,
                                                 const ConnectOptions& connect);

} // namespace titan
