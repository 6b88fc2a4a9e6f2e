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

std::vector<std::string> unmatchedNoDecay(const OptimizerRecipe& recipe, mlir::ModuleOp module) {
  std::vector<std::string> unmatched;
  const std::vector<std::string> usual = OptimizerRecipe().noDecay;
  std::ranges::copy_if(recipe.noDecay, std::back_inserter(unmatched), [&](const std::string& glob) {
    return std::ranges::find(usual, glob) == usual.end() &&
           llvm::none_of(module.getOps<ir::StateOp>(), [&](ir::StateOp state) {
             return state.getKind() == ir::StateKind::Param && matchesName(glob, state);
           });
  });
  return unmatched;
}

} // namespace titan
