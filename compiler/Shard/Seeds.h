// Where placements begin: what the recipe divides among the ranks.
#pragma once

#include "compiler/Shard/ValuePlacement.h"
#include "compiler/Support/TaggedFunction.h"

namespace titan {

/// What of an argument of `function` each rank has: of the inputs of @step its own microbatches, of
/// the control `stop` its own term, of all that @eval and @predict get beside states its own batch;
/// all else is replicated. (A state has the placement of its symbol.)
dist::PlacementAttr seedOf(const TaggedFunction& function, unsigned argument, dist::MeshAttr mesh);

} // namespace titan
