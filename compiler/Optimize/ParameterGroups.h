// Which hyperparameters a parameter is updated with.
#pragma once

#include "runtime/program/Recipe.h"

#include <optional>
#include <string_view>

namespace titan {

struct ParameterGroup {
  double lrScale = 1;
  /// Absent: the run-time value optimizer.weight_decay.
  std::optional<double> weightDecay;
};

/// The first group of the recipe that matches `name`; then its own weight decay, or 0 for a
/// `no_decay` name, or the run-time value.
ParameterGroup groupOf(const OptimizerRecipe& recipe, std::string_view name);

} // namespace titan
