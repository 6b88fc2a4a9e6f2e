// The routine #kernel.scatter: updates of the elements that indices name.
#pragma once

#include "compiler/Codegen/cuda/KernelModule.h"
#include "dialects/Kernel/Kernel.h"

namespace titan::codegen::cuda {

/// Adds the entry point `symbol` with operands indices, updates, result: a thread has up to 16
/// bytes of each entry, and walks the rows in order.
mlir::LogicalResult emitScatterKernel(KernelModule& kernels, kernel::CallOp call,
                                      llvm::StringRef symbol);

} // namespace titan::codegen::cuda
