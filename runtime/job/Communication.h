// What the ranks of a job exchange, as `plan` lists it and as `profile` counts it.
#pragma once

#include "runtime/collective/Communicator.h"
#include "runtime/program/Error.h"
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

/// What the host side of a rank passes on where tensors are distributed: broadcasts, of blocks.
struct HostRow {
  std::string function; ///< "initialize": the first weights; "load": of a checkpoint that these
                        ///< ranks have saved. A save sends nothing: each rank writes what it has
  Traffic traffic;      ///< of the rank: what it sends round, and what comes to it
};
/// Of `rank`. Internal: the program's state could not be saved.
Result<std::vector<HostRow>> hostLedgerOf(const Program& program, int64_t rank);
/// The same as rows of ledgerJson(), of phase "host" and kind "broadcast", over all axes.
nlohmann::ordered_json hostLedgerJson(const std::vector<HostRow>& rows,
                                      std::span<const MeshAxis> mesh);

/// A row that was counted: { ..., count, payload, moved, moved_all } as of countedJson().
nlohmann::ordered_json countedHostJson(const HostRow& row, int64_t movedByAll,
                                       std::span<const MeshAxis> mesh);

/// Lines below those of ledgerText().
std::string hostLedgerText(const std::vector<HostRow>& rows, std::span<const MeshAxis> mesh);

/// What came in between two counts of one communicator.
std::vector<Traffic> trafficBetween(const std::vector<Traffic>& before, std::vector<Traffic> after);

} // namespace titan
