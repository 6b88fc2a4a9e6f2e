// From a module of kernel functions to machine code.
#pragma once

#include "compiler/Codegen/TargetInfo.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"

#include <string>

namespace titan::codegen {

/// A relocatable ELF object with the functions of `kernels`, which is lowered in place. Internal,
/// with MLIR's or LLVM's message, when one of them refuses.
Result<std::string> emitKernelObject(mlir::ModuleOp kernels, const TargetInfo& target);
/// The same as assembly text, for `--emit=codegen` and --save-temps.
Result<std::string> emitKernelAssembly(mlir::ModuleOp kernels, const TargetInfo& target);
/// An ELF object of an LLVM module (the job's data).
Result<std::string> emitObject(llvm::Module& module, const TargetInfo& target);

} // namespace titan::codegen
