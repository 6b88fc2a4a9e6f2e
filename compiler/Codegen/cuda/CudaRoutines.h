// The routines of kernel.call that have a kernel on cuda, and how they are emitted.
#pragma once

#include "compiler/Codegen/Routines.h"
#include "compiler/Codegen/cuda/KernelModule.h"

namespace titan::codegen::cuda {

/// Null: it has none.
const RoutineEmitter* findRoutine(mlir::Attribute routine);

/// Adds the launches of `call` as `symbol`, or as `symbol`_0, `symbol`_1, ... in their order. Fails
/// with a diagnostic on the call.
mlir::LogicalResult emitRoutineKernel(KernelModule& kernels, kernel::CallOp call,
                                      llvm::StringRef symbol);

} // namespace titan::codegen::cuda
