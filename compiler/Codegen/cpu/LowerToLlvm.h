// The pipeline from kernels to the LLVM dialect.
#pragma once

#include "mlir/Pass/PassManager.h"

namespace titan::codegen {

/// Kernel functions (func, scf, arith, math, vector) to the LLVM dialect. No pass in it may
/// change a rounding: none contracts, reassociates or approximates beyond ExpandMath. Without
/// `hasBf16` (AVX-512 BF16) conversions to bf16 become integer arithmetic.
void addLowerToLlvmPasses(mlir::OpPassManager& passes, bool hasBf16);

} // namespace titan::codegen
