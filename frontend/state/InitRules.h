// How parameters start and which of them train: what the recipe says of them by name, and what
// holds where it says nothing. The same for every source of models.
#pragma once

#include "dialects/Titan/Titan.h"
#include "runtime/program/Recipe.h"

namespace titan::frontend {

/// The names of one state: its own, and the others that it is tied to.
struct StateNames {
  std::string name;
  std::vector<std::string> aliases;

  bool matches(std::string_view glob) const;
};

/// How a parameter starts that nobody has a rule for.
enum class DefaultInit {
  One,   ///< the scale of a norm
  Zero,  ///< a bias
  Slope, ///< of a PReLU below zero: 0.25, as in arXiv:1502.01852
  Table, ///< rows that are looked up: normal(0, 0.02)
  FanIn, ///< what is multiplied by: normal(0, 1 / sqrt(fan in))
};

/// `fanIn`: how many products an output sums up.
ir::RuleInitAttr defaultInit(mlir::MLIRContext* context, DefaultInit kind, int64_t fanIn = 1);

/// The first `[[model.init_rule]]` that matches; null where none does.
ir::RuleInitAttr initByRecipe(mlir::MLIRContext* context, const StateNames& names,
                              const Recipe& recipe);

/// Does `model.frozen` name the parameter?
bool isFrozen(const StateNames& names, const Recipe& recipe);
/// Error: a pattern of `model.frozen` or of a `[[model.init_rule]]` that matches none of the
/// `parameters`, which the option `listing` of titan-compile shows.
Status checkPatterns(llvm::ArrayRef<StateNames> parameters, const Recipe& recipe,
                     std::string_view listing);

/// The symbol of a state. Functions share the symbol table: a tensor that is called like one of
/// them gets a symbol of its own.
std::string symbolOf(const std::string& name);

} // namespace titan::frontend
