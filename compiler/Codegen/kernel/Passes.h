// Passes on generated kernels.
#pragma once

#include "mlir/Pass/Pass.h"

namespace titan::codegen {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Codegen/kernel/Passes.h.inc"

} // namespace titan::codegen
