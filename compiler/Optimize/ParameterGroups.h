// Which hyperparameters a parameter is updated with.
#pragma once

#include "dialects/Titan/Titan.h"
#include "runtime/program/Recipe.h"

#include <optional>
#include <string>
#include <vector>

namespace titan {

struct ParameterGroup {
  double lrScale = 1;
  /// Absent: the run-time value optimizer.weight_decay.
  std::optional<double> weightDecay;
};

/// The first group of the recipe that matches a name of `parameter`; then its own weight decay, or
/// 0 for a `no_decay` name, or the run-time value.
ParameterGroup groupOf(const OptimizerRecipe& recipe, ir::StateOp parameter);

/// The `no_decay` patterns that match no parameter of `module`, without those that a recipe has by
/// default: models without biases are everyday.
std::vector<std::string> unmatchedNoDecay(const OptimizerRecipe& recipe, mlir::ModuleOp module);

} // namespace titan
