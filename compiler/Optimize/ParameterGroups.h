// Which hyperparameters a parameter is updated with.
#pragma once

#include "dialects/Titan/Titan.h"
#include "runtime/program/Recipe.h"

#include <optional>

namespace titan {

struct ParameterGroup {
  double lrScale = 1;
  /// Absent: the run-time value optimizer.weight_decay.
  std::optional<double> weightDecay;
};

/// The first group of the recipe that matches a name of `parameter`; then its own weight decay, or
/// 0 for a `no_decay` name, or the run-time value.
ParameterGroup groupOf(const OptimizerRecipe& recipe, ir::StateOp parameter);

} // namespace titan
