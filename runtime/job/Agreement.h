// What all ranks of a job must have alike, and how they find that they do not.
#pragma once

#include "runtime/collective/Peers.h"
#include "runtime/data/Dataset.h"
#include "runtime/job/Session.h"

#include <functional>
#include <string>
#include <vector>

namespace titan {

/// One thing that may differ between ranks: "optimizer.lr", "0.001".
struct Fact {
  std::string name, value;
  bool operator==(const Fact&) const = default;
};

/// Usage, on all ranks: what differs from rank 0, as "rank 1: optimizer.lr = 0.0001, rank 0:
/// 0.001". Every rank brings the same names. A rank that is alone is not asked for its facts.
Status agreeOn(Peers& peers, std::string_view name,
               const std::function<std::vector<Fact>()>& facts);

/// The command with its flags, the program, and each key of the recipe of this run.
std::vector<Fact> factsOf(const Session& session);

/// The same for a data set that the recipe calls `key`: its length and digest.
Status agreeOnData(Peers& peers, const std::string& key, const Dataset& dataset);

/// Usage where `program` runs on another number of ranks than were started, with how to start it.
/// `job` is the name by which it was called.
Status checkRankCount(const Program& program, int64_t started, const std::string& job,
                      JobCommand command);

/// Usage where `rank` is none of the program's, or more ranks were started than this one.
Status checkImaginedRank(const Program& program, int64_t started, int64_t rank);

/// Do all ranks see the run directory that rank 0 has locked? Environment, naming a rank that does
/// not.
Status checkIsShared(Peers& peers, const std::string& directory);

} // namespace titan
