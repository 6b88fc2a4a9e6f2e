// The routines of kernel.call that have kernels on a card.
#pragma once

#include "compiler/Codegen/cuda/KernelModule.h"
#include "dialects/Kernel/Kernel.h"

namespace titan::codegen::cuda {

/// Adds the entry point `symbol` of the call, or `symbol`_0, `symbol`_1, ... where it takes several
/// launches. Fails with a diagnostic on the call for what has no code here.
mlir::LogicalResult emitRoutine(KernelModule& kernels, kernel::CallOp call, llvm::StringRef symbol);

} // namespace titan::codegen::cuda
