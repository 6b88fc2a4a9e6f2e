// The routines #kernel.embedding and #kernel.embedding_grad: rows of a table by index.
#pragma once

#include "compiler/Codegen/cuda/KernelModule.h"
#include "dialects/Kernel/Kernel.h"

namespace titan::codegen::cuda {

/// Adds the entry point `symbol` with operands table, indices, result: a thread copies up to 16
/// bytes of a row.
mlir::LogicalResult emitEmbeddingKernel(KernelModule& kernels, kernel::CallOp call,
                                        llvm::StringRef symbol);

/// Adds entry points `symbol`_0, ... with operands gradient of the rows, indices, gradient of the
/// table and workspace: zeros where nothing is accumulated, the sort, the sums. Fails with a
/// diagnostic on the call where it is not `sorted`, and for a type that has no code here.
mlir::LogicalResult emitEmbeddingGradKernels(KernelModule& kernels, kernel::CallOp call,
                                             llvm::StringRef symbol);

} // namespace titan::codegen::cuda
