// Patterns of the recipe and the states that they mean.
#pragma once

#include "dialects/Titan/Titan.h"

namespace titan {

/// Does `glob` match the canonical name of `state` or one of those that it is tied under? A user
/// may say `lm_head.*` or `*.wte.*` of one table.
bool matchesName(llvm::StringRef glob, ir::StateOp state);

} // namespace titan
