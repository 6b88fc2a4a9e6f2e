// The table of strategies (runtime/program/Strategy.h) as placements of states and gradients.
#pragma once

#include "compiler/Shard/ValuePlacement.h"
#include "runtime/program/Recipe.h"

namespace titan {

/// What of `state` each rank has by the strategy of `mesh`. Buffers and counters are whole; a
/// frozen parameter is placed like a trained one, an average like its parameter.
ValuePlacement placementOfState(ir::StateOp state, const MeshRecipe& mesh);

/// What of the gradient of `parameter` its update takes, once ranks have summed it.
ValuePlacement placementOfGradient(ir::StateOp parameter, const MeshRecipe& mesh);

} // namespace titan
