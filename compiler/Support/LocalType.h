// What each rank holds of a state: the placement on its symbol, by the rule of
// runtime/program/Placement.h.
#pragma once

#include "dialects/Titan/Titan.h"
#include "runtime/program/Placement.h"

namespace titan {

/// The placement of `state` as cuts by axes of `mesh`. Emits an error where it names an axis that
/// the mesh does not have.
llvm::FailureOr<Placement> placementOf(ir::StateOp state, std::span<const MeshAxis> mesh);

/// The type of the state's part on each rank, with its padding: that of arguments and results from
/// *shard* on.
llvm::FailureOr<mlir::RankedTensorType> localTypeOf(ir::StateOp state,
                                                    std::span<const MeshAxis> mesh);

} // namespace titan
