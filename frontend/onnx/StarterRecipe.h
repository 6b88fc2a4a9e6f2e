// `titan-compile --write-recipe`: a recipe to start from, with what the model says filled in.
#pragma once

#include "frontend/onnx/Import.h"

namespace titan::frontend {

/// Every key with its default and a comment, `model.dims` for the symbols that need a value, a loss
/// that fits the first output, and the model's inputs, outputs and parameters as comments. TOML
/// that parseRecipe reads.
Result<std::string> starterRecipe(const std::string& path, const ImportOptions& options);

} // namespace titan::frontend
