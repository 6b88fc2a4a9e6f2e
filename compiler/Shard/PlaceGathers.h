// Where parameters of which each rank has a part are gathered for forward and backward.
#pragma once

#include "compiler/Shard/Conversions.h"

namespace titan {

/// Builds the gathers of `conversions`, whose next step is one: for each value one before the first
/// op of forward that reads it, and one before the first op of backward, as `mesh.reshard` of the
/// recipe says. Each has a remark. What is gathered though it is no parameter that a layer reads
/// has a *missed* remark, and is an error without `mesh.allow_reshard`.
llvm::LogicalResult placeGathers(llvm::ArrayRef<Conversion> conversions,
                                 FunctionPlacements& placements, const MeshRecipe& recipe);

} // namespace titan
