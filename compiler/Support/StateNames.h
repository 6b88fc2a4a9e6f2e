// Patterns of the recipe and the states that they mean.
#pragma once

#include "dialects/Titan/Titan.h"

namespace titan {

/// Does `glob` match the canonical name of `state` or one of those that it is tied under? A user
/// may say `lm_head.*` or `*.wte.*` of one table.
bool matchesName(llvm::StringRef glob, ir::StateOp state);

/// The symbol of the average that `profile` keeps of the state with symbol `symbol`.
std::string averageSymbol(llvm::StringRef profile, llvm::StringRef symbol);
/// The profile of an average, from its symbol; empty for states of other kinds.
llvm::StringRef profileOf(ir::StateOp state);
/// What an average is of; null for states of other kinds.
ir::StateOp averagedBy(ir::StateOp average);

} // namespace titan
