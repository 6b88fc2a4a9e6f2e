// kernel.fused -> one entry point: which schedule it has, and what it may contain.
#pragma once

#include "compiler/Codegen/cuda/KernelModule.h"
#include "compiler/Codegen/kernel/LoopNest.h"

namespace titan::codegen::cuda {

/// Adds the entry point `symbol`. Fails with a diagnostic on the op for a function or a type that
/// has no code here.
mlir::LogicalResult emitFusedKernel(KernelModule& kernels, kernel::FusedOp op,
                                    llvm::StringRef symbol);

} // namespace titan::codegen::cuda
