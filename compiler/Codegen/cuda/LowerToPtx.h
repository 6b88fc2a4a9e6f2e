// From a module of kernels to PTX.
#pragma once

#include "compiler/Codegen/cuda/KernelModule.h"
#include "runtime/program/Error.h"

#include "mlir/Pass/PassManager.h"

namespace titan::codegen::cuda {

/// The passes that take kernels from scf, arith, math and vector to the LLVM dialect.
void addLowerToNvvmPasses(mlir::OpPassManager& passes);

/// PTX 8.0 of all kernels, which are taken apart, for cards from `arch` ("sm_80") on. Internal,
/// with MLIR's or LLVM's message, when one of them refuses, and by checkPtx().
Result<std::string> emitPtx(KernelModule& kernels, const std::string& arch);

/// Internal, with the line, for what generated PTX may not have: an approximation, a flushed
/// denormal, a call, memory of a thread's own, an atomic, an f32 operation that the assembler may
/// contract.
Status checkPtx(std::string_view ptx);

} // namespace titan::codegen::cuda
