// What the ranks of a job exchange, as `plan` lists it and as `profile` counts it.
#pragma once

#include "runtime/collective/Communicator.h"
#include "runtime/program/Ledger.h"

#include <nlohmann/json.hpp>

namespace titan {

/// [{ function, phase, kind, axes, dtype, source, count, payload, wire }], of one execution of each
/// function on one rank.
nlohmann::ordered_json ledgerJson(const std::vector<LedgerRow>& rows);
/// The same as lines, with a heading that names the mesh; "communication: none, 1 rank" where there
/// is nothing.
std::string ledgerText(const std::vector<LedgerRow>& rows, std::span<const MeshAxis> mesh);

/// The rows of `step` as lines, with what was counted on this rank in a step: `moved` is what came
/// from others. `counted` as of countedJson().
std::string countedText(const std::vector<LedgerRow>& rows, std::span<const Traffic> counted,
                        int64_t steps, std::span<const MeshAxis> mesh);

/// The rows of `step`, with what was counted in place of what is planned: { ..., count, payload,
/// moved } of one of `steps` steps on this rank, and `moved_all`, on all ranks together. `counted`
/// and `movedByAll` have one entry a collective of the program.
nlohmann::ordered_json countedJson(const std::vector<LedgerRow>& rows,
                                   std::span<const Traffic> counted,
                                   std::span<const int64_t> movedByAll, int64_t steps);

/// What came in between two counts of one communicator.
std::vector<Traffic> trafficBetween(const std::vector<Traffic>& before, std::vector<Traffic> after);

} // namespace titan
