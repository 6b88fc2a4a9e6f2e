// The routine #kernel.top_k: the first elements of sorted rows, and where they stood.
#pragma once

#include "compiler/Codegen/cuda/KernelModule.h"
#include "dialects/Kernel/Kernel.h"

namespace titan::codegen::cuda {

/// Adds the entry point `symbol` with operands x, values, indices: a thread has an element, and
/// counts those of its row that come before it. Fails with a diagnostic on the call for a type that
/// has no code here.
mlir::LogicalResult emitTopKKernel(KernelModule& kernels, kernel::CallOp call,
                                   llvm::StringRef symbol);

} // namespace titan::codegen::cuda
