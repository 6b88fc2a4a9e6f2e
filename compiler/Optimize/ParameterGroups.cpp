#include "compiler/Optimize/ParameterGroups.h"

#include <algorithm>

namespace titan {

ParameterGroup groupOf(const OptimizerRecipe& recipe, std::string_view name) {
  ParameterGroup result;
  auto group = std::ranges::find_if(
      recipe.groups, [&](const OptimizerGroup& g) { return matchesGlob(g.match, name); });
  if (group != recipe.groups.end()) {
    result.lrScale = group->lrScale;
    result.weightDecay = group->weightDecay;
  }
  bool exempt = std::ranges::any_of(
      recipe.noDecay, [&](const std::string& glob) { return matchesGlob(glob, name); });
  if (!result.weightDecay && exempt)
    result.weightDecay = 0;
  return result;
}

} // namespace titan
