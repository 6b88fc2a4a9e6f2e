// `titan-compile --write-recipe nn:...`: a recipe to start from.
#pragma once

#include "frontend/nn/Models.h"

#include "mlir/IR/MLIRContext.h"

namespace titan::nn {

/// Every key with its default or what the model suggests, and the model's inputs, outputs and
/// parameters as comments. TOML that parseRecipe reads.
Result<std::string> starterRecipe(mlir::MLIRContext& context, const ModelRequest& request);

} // namespace titan::nn
