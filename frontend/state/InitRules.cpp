#include "frontend/state/InitRules.h"

#include <cmath>

using namespace mlir;

namespace titan::frontend {

bool StateNames::matches(std::string_view glob) const {
  return matchesGlob(glob, name) ||
         llvm::any_of(aliases, [&](const std::string& alias) { return matchesGlob(glob, alias); });
}

ir::RuleInitAttr defaultInit(MLIRContext* context, DefaultInit kind, int64_t fanIn) {
  switch (kind) {
  case DefaultInit::One:
    return ir::RuleInitAttr::get(context, "constant", 1, 0);
  case DefaultInit::Zero:
    return ir::RuleInitAttr::get(context, "constant", 0, 0);
  case DefaultInit::Slope:
    return ir::RuleInitAttr::get(context, "constant", 0.25, 0);
  case DefaultInit::Table:
    return ir::RuleInitAttr::get(context, "normal", 0, 0.02);
  case DefaultInit::FanIn:
    break;
  }
  return ir::RuleInitAttr::get(context, "normal", 0, 1 / std::sqrt(static_cast<double>(fanIn)));
}

ir::RuleInitAttr initByRecipe(MLIRContext* context, const StateNames& names, const Recipe& recipe) {
  for (const InitRule& rule : recipe.model.initRules) {
    if (!names.matches(rule.match))
      continue;
    if (rule.dist == "constant")
      return ir::RuleInitAttr::get(context, "constant", rule.value, 0);
    if (rule.dist == "uniform")
      return ir::RuleInitAttr::get(context, "uniform", rule.low, rule.high);
    return ir::RuleInitAttr::get(context, "normal", rule.mean, rule.std);
  }
  return {};
}

bool isFrozen(const StateNames& names, const Recipe& recipe) {
  return llvm::any_of(recipe.model.frozen,
                      [&](const std::string& glob) { return names.matches(glob); });
}

Status checkPatterns(ArrayRef<StateNames> parameters, const Recipe& recipe,
                     std::string_view listing) {
  const auto check = [&](std::string_view key, const std::string& glob) -> Status {
    if (llvm::any_of(parameters, [&](const StateNames& names) { return names.matches(glob); }))
      return {};
    return Error::badInput("{}: '{}' matches no parameter; {} lists them", key, glob, listing);
  };
  for (const std::string& glob : recipe.model.frozen)
    TITAN_TRY(check("model.frozen", glob));
  for (const InitRule& rule : recipe.model.initRules)
    TITAN_TRY(check("model.init_rule", rule.match));
  return {};
}

std::string symbolOf(const std::string& name) {
  for (StringRef reserved :
       {ir::function::model, ir::function::step, ir::function::eval, ir::function::predict})
    if (name == reserved)
      return "state." + name;
  return name;
}

} // namespace titan::frontend
