// Passes on generated kernels.
#pragma once

#include "mlir/Pass/Pass.h"

namespace titan::codegen {

/// On a `math.exp` whose operand is not above 0, or NaN: it need not be limited from above.
inline constexpr llvm::StringLiteral nonPositiveAttr = "kernel.nonpositive";

/// On an `arith.addf` that adds a term to a sum which began at +0, and so is never -0.
inline constexpr llvm::StringLiteral runningSumAttr = "kernel.running_sum";

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Codegen/kernel/Passes.h.inc"

} // namespace titan::codegen
