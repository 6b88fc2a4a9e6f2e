// Passes of CPU code generation, and the pipeline from kernels to the LLVM dialect.
#pragma once

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace titan::codegen {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Codegen/cpu/Passes.h.inc"

/// Kernel functions (func, scf, arith, math, vector) to the LLVM dialect. No pass in it may
/// change a rounding: none contracts, reassociates or approximates beyond ExpandMath. Without
/// `hasBf16` (AVX-512 BF16) conversions to bf16 become integer arithmetic.
void addLowerToLlvmPasses(mlir::OpPassManager& passes, bool hasBf16);

} // namespace titan::codegen
