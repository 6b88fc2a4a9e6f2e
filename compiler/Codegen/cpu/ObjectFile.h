// From a module of kernel functions to machine code.
#pragma once

#include "compiler/Codegen/CodeCache.h"
#include "compiler/Support/TargetInfo.h"
#include "runtime/program/Error.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace titan::codegen {

/// An archive of relocatable ELF objects, one for each function of `kernels`, which is taken apart.
/// What `cache` has is not compiled. Internal, with MLIR's or LLVM's message, when one of them
/// refuses.
Result<std::string> emitKernelObjects(mlir::ModuleOp kernels, const TargetInfo& target,
                                      CodeCache* cache = nullptr);
/// The same as assembly text, for `--emit=codegen`.
Result<std::string> emitKernelAssembly(mlir::ModuleOp kernels, const TargetInfo& target);

} // namespace titan::codegen
