// The ranks of a job: which one this process is, and how it reaches the others.
#pragma once

#include "runtime/collective/Communicator.h"
#include "runtime/collective/ConnectOptions.h"
#include "runtime/program/Error.h"

#include <cstdint>
#include <memory>

namespace titan::launch {

/// Who started this process.
enum class Starter {
  Nobody,
  TitanRun,
  OpenMpi, ///< its mpirun
  Pmi,     ///< MPICH's mpirun, or srun --mpi=pmi2
  Pmix,    ///< srun --mpi=pmix
};

/// What a launcher says to each process.
struct RankInfo {
  Starter starter = Starter::Nobody;
  int64_t rank = 0, ranks = 1;
  int64_t localRank = 0, localRanks = 1; ///< of those on this host
  int controlFd = -1;                    ///< the control block of titan-run; -1: there is none

  bool isAlone() const { return ranks == 1; }
};

/// From the first of these that is set: TITAN_RANK and its like, OMPI_COMM_WORLD_RANK, PMI_RANK,
/// PMIX_RANK, SLURM_PROCID of a step; README.md lists them. One rank where none is. Usage, with the
/// variable and its value, where they do not fit each other; Environment for ranks that cannot find
/// each other, as those of srun without a PMI.
Result<RankInfo> detectRank();

/// How many threads this rank computes on. The ranks of titan-run have CPUs of their own; those of
/// other launchers may share them, and share them out.
int defaultThreads(const RankInfo& info);

/// A communicator for the ranks of titan-run, on shared memory, or for those of another launcher,
/// by its MPI or that of TITAN_MPI; of one rank, which never waits, where `info` is alone. Once a
/// process, by the thread that walks the command table: from here on the other ranks watch whether
/// this one lives. Environment where the control block is missing, of another version, or cannot be
/// mapped; where MPI is not there, or is another than the launcher's. Usage for a TITAN_COMM_DELAY
/// or TITAN_MPI that is none.
Result<std::unique_ptr<Communicator>> connect(const RankInfo& info, const ConnectOptions& options);

/// Rank `rank` of `ranks` that are not there: what it computes is of no use (Null.h).
Result<std::unique_ptr<Communicator>> connectWithoutPeers(int64_t rank, int64_t ranks);

} // namespace titan::launch
