// The ranks of a job: which one this process is, and how it reaches the others.
#pragma once

#include "runtime/collective/Communicator.h"
#include "runtime/collective/ConnectOptions.h"
#include "runtime/program/Error.h"

#include <cstdint>
#include <memory>

namespace titan::launch {

/// What a launcher says to each process.
struct RankInfo {
  int64_t rank = 0, ranks = 1;
  int64_t localRank = 0, localRanks = 1; ///< of those on this host
  int controlFd = -1;                    ///< the control block of titan-run; -1: there is none

  bool isAlone() const { return ranks == 1; }
};

/// From TITAN_RANK, TITAN_RANKS, TITAN_LOCAL_RANK, TITAN_LOCAL_RANKS and TITAN_CONTROL_FD; one rank
/// where none is set. Usage, with the variable and its value, where they do not fit each other.
///
/// A rank's CPUs are its affinity mask, so allowedCpus() is its number of threads on any machine.
Result<RankInfo> detectRank();

/// A communicator for the ranks of titan-run, on shared memory; of one rank, which never waits,
/// where `info` is alone. Once a process: from here on the other ranks watch whether this one
/// lives. Environment where the control block is missing, of another version, or cannot be mapped.
/// Usage for a TITAN_COMM_DELAY that is none.
Result<std::unique_ptr<Communicator>> connect(const RankInfo& info, const ConnectOptions& options);

/// Rank `rank` of `ranks` that are not there: what it computes is of no use (Null.h).
Result<std::unique_ptr<Communicator>> connectWithoutPeers(int64_t rank, int64_t ranks);

} // namespace titan::launch
