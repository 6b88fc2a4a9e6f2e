// (C4), (C5) and (C7) of titan.state: its sources and what its init stores of them.
#pragma once

#include "dialects/Titan/Titan.h"

namespace titan::ir {

/// `state` has a type of static shape and an init of one of the two kinds.
llvm::LogicalResult verifySources(StateOp state);

} // namespace titan::ir
