// The first state of a job: every rank gets its parts, whatever the mesh, with the same bits.
//
// What a rule draws, each rank draws for itself. Bytes of the model file have one digest a tensor,
// so one rank, the tensor's owner, reads all of it and sends it round; the others keep what is
// theirs. Owners take turns.
#pragma once

#include "runtime/collective/Peers.h"
#include "runtime/device/StateAccess.h"
#include "runtime/executor/InitialState.h"

namespace titan {

/// The wait for first weights, and the broadcasts of their bytes.
inline constexpr std::string_view firstWeightsName = "the first weights";

/// What writeFirstWeights() broadcasts: what `rank` sends round, and gets of others.
Traffic firstWeightsTraffic(const Program& program, int64_t rank);

/// Writes every state. All ranks call it; an error of one is the error of all, with its number.
Status writeFirstWeights(StateAccess& access, const InitialStateSources& sources, ThreadPool& pool,
                         Peers& peers);

} // namespace titan
