// The generated matrix product: any extents, transpositions, strides and epilogues, of f32 or bf16.
//
// A block of threads has a tile of C and goes along k in steps, whose parts of A and B lie in
// shared memory; a thread has a few rows and columns of the tile in registers. Every element of C
// is one chain of multiply-adds along k in f32, whatever the tile. Then what C held is added, then
// the bias, and relu comes last.
#pragma once

#include "compiler/Codegen/cuda/KernelModule.h"
#include "dialects/Kernel/Kernel.h"

namespace titan::codegen::cuda {

/// Adds the entry point `symbol` with operands A, B, C and the bias, if there is one. Fails with a
/// diagnostic on the call for a type that has no code here.
mlir::LogicalResult emitGemmKernel(KernelModule& kernels, kernel::CallOp call,
                                   llvm::StringRef symbol);

} // namespace titan::codegen::cuda
