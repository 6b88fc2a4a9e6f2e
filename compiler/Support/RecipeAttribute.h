// The recipe as an attribute of the module: a printed stage carries everything that later stages
// need.
#pragma once

#include "runtime/program/Recipe.h"

#include "mlir/IR/BuiltinOps.h"

namespace titan {

/// The recipe under `titan.recipe`. A module without one has the default recipe. Emits an error on
/// the module when the dictionary is no valid recipe (an unknown key, a value of another type or
/// out of range).
mlir::FailureOr<Recipe> getRecipe(mlir::ModuleOp module);

/// Sets `titan.recipe` to a dictionary with every key, a nested dictionary a table.
void setRecipe(mlir::ModuleOp module, const Recipe& recipe);

} // namespace titan
