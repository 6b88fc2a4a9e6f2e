// Parameters and buffers as `titan.state` symbols: where each starts from.
#pragma once

#include "dialects/Titan/Titan.h"
#include "frontend/onnx/name/Names.h"
#include "runtime/program/Recipe.h"

namespace titan::frontend {

/// Adds a `titan.state` to `module` for every state of `names`, in their order. A file init refers
/// to the bytes of its tensors in the file; with `model.init = "fresh"` parameters get a rule.
/// Errors: weights that are not there, or not in one piece.
Result<std::vector<ir::StateOp>> addStates(mlir::ModuleOp module, const Graph& graph,
                                           const NameTable& names, const Recipe& recipe);

} // namespace titan::frontend
