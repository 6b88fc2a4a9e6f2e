// The generated matrix product: any shape and transposition, f32 or bf16 operands, any epilogue;
// the same units and operands as Gemm in runtime/program/Program.h.
//
// A range of units is cut into rectangles of C, these into blocks, and a block along k into panels
// of at most gemmDepth lanes; for each, A's panel is packed once, B's for each register tile's
// columns. Every element of C is the sum over the panels, in order, of one chain of multiply-adds
// each, whatever the tiles; bf16 operands are taken in pairs along k.
#pragma once

#include "compiler/Codegen/cpu/FusedKernel.h"
#include "compiler/Support/TargetInfo.h"

namespace titan::codegen {

/// The vector lengths for `target`.
VectorShape vectorShape(const TargetInfo& target);

/// Emits the function `name` for one product (routine and operand types of `call`) at the builder's
/// insertion point (a module), and, once per module, the private functions that all products share.
mlir::func::FuncOp emitGemmKernel(mlir::OpBuilder& builder, kernel::CallOp call,
                                  llvm::StringRef name, const VectorShape& shape);

} // namespace titan::codegen
