// Where the ranks of a job are, and how those that are elsewhere reach rank 0.
#pragma once

#include "runtime/collective/mpi/Operations.h"
#include "runtime/collective/mpi/Relay.h"

#include <string>
#include <vector>

namespace titan {

class Hosts {
public:
  /// Every rank calls it.
  static Result<Hosts> gather(Operations& operations, int64_t rank, int64_t ranks);

  std::string name(int64_t rank) const { return at(rank).name; }
  int32_t pid(int64_t rank) const { return at(rank).pid; }
  /// Are all ranks on one host, with one view of the network?
  bool areOne() const;
  /// Of the ranks on the host of `rank`, without rank 0.
  int64_t lowestBesidesFirst(int64_t rank) const;

private:
  /// What a rank says of itself.
  struct Fact {
    char name[64];
    char network[128]; ///< equal where loopback addresses are
    int32_t pid;
  };
  static Fact mine();
  const Fact& at(int64_t rank) const { return facts_[static_cast<size_t>(rank)]; }

  std::vector<Fact> facts_;
};

/// A connection of each rank with rank 0 (Star.h); rank 0 tells the others by MPI where it listens.
/// Environment where a rank does not reach it.
Result<std::vector<Relay::Link>> connectStar(Operations& operations, const Hosts& hosts,
                                             int64_t rank, int64_t ranks);

} // namespace titan
