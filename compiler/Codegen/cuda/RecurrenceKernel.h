// The kernel of #kernel.recurrence: a block of threads has some samples and goes over all steps.
#pragma once

#include "compiler/Codegen/cuda/KernelModule.h"
#include "dialects/Kernel/Kernel.h"

namespace titan::codegen::cuda {

/// Fails, with a diagnostic on `call`, on f64, and where the states of one sample take more shared
/// memory than a block has.
mlir::LogicalResult emitRecurrenceKernel(KernelModule& kernels, kernel::CallOp call,
                                         llvm::StringRef symbol);

} // namespace titan::codegen::cuda
