#include "compiler/Optimize/ParameterGroups.h"

#include "compiler/Support/StateNames.h"

#include <algorithm>

namespace titan {

ParameterGroup groupOf(const OptimizerRecipe& recipe, ir::StateOp parameter) {
  ParameterGroup result;
  auto group = std::ranges::find_if(
      recipe.groups, [&](const OptimizerGroup& g) { return matchesName(g.match, parameter); });
  if (group != recipe.groups.end()) {
    result.lrScale = group->lrScale;
    result.weightDecay = group->weightDecay;
  }
  bool exempt = std::ranges::any_of(
      recipe.noDecay, [&](const std::string& glob) { return matchesName(glob, parameter); });
  if (!result.weightDecay && exempt)
    result.weightDecay = 0;
  return result;
}

} // namespace titan
