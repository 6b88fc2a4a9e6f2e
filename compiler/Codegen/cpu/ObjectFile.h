// From a module of kernel functions to machine code.
#pragma once

#include "compiler/Support/TargetInfo.h"
#include "runtime/program/Error.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace titan::codegen {

/// A relocatable ELF object with the functions of `kernels`, which is lowered in place. Internal,
/// with MLIR's or LLVM's message, when one of them refuses.
Result<std::string> emitKernelObject(mlir::ModuleOp kernels, const TargetInfo& target);
/// The same as assembly text, for `--emit=codegen` and --save-temps.
Result<std::string> emitKernelAssembly(mlir::ModuleOp kernels, const TargetInfo& target);

} // namespace titan::codegen
