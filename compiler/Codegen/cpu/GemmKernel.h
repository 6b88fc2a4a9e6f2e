// The generated matrix product that stands in for the library: any shape and transposition, the
// same units and operands as Gemm in runtime/program/Program.h.
//
// Every element of C is one chain of fused multiply-adds over k in order, whatever the tiles. B is
// packed in panels of `gemmDepth` rows by one register tile's columns; a register tile is 4 rows by
// up to four vectors.
#pragma once

#include "compiler/Codegen/TargetInfo.h"
#include "compiler/Codegen/cpu/FusedKernel.h"

namespace titan::codegen {

/// Rows of a packed panel of B: with a tile's columns it stays in the first-level cache.
inline constexpr int64_t gemmDepth = 128;

/// The vector lengths for `target`.
VectorShape vectorShape(const TargetInfo& target);

/// Emits the function `name` for one configuration at the builder's insertion point (a module),
/// and, once per module, the private functions that all configurations share.
mlir::func::FuncOp emitGemmKernel(mlir::OpBuilder& builder, mlir::Location loc,
                                  kernel::GemmAttr gemm, llvm::StringRef name,
                                  const VectorShape& shape);

} // namespace titan::codegen
