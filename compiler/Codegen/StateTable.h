// `titan.state` as an entry of the job's table of states.
#pragma once

#include "dialects/Titan/Titan.h"
#include "runtime/program/Program.h"

namespace titan::codegen {

/// Everything about `state` on a rank of `mesh` but its place in the arena; initial weights of a
/// file are referred to (Init::External). Fails with a diagnostic for an element type that no
/// checkpoint holds.
mlir::FailureOr<State> describeState(ir::StateOp state, std::span<const MeshAxis> mesh);

} // namespace titan::codegen
