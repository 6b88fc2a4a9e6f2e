// Packing of bf16 operands for the matrix unit: steps of 32 elements along k, each of two tiles
// that lie side by side, 2 KiB; those of 32 rows of A or 32 columns of B follow each other along k.
//
//   A: panel[step][half][16 rows][32 elements of k]
//   B: panel[block of 32 columns][step][half][16 pairs along k][16 columns][2]
#pragma once

#include "compiler/Codegen/cpu/KernelBuilder.h"

namespace titan::codegen {

/// What one step covers: 32 rows or columns, 32 elements along k.
inline constexpr int64_t matrixBlock = 32, matrixStep = 32;
/// bf16 elements of a packed step.
inline constexpr int64_t packedStep = matrixBlock * matrixStep;

/// How an operand is stored and what becomes of it.
struct MatrixOperand {
  bool isRight = false; ///< B
  bool alongK = true;   ///< elements of one row (A) or column (B) lie side by side
  bool rounds = false;  ///< f32 in memory, rounded to bf16
};

struct MatrixPackArguments {
  mlir::Value from, leading; ///< elements from line to line, as the operand is stored
  mlir::Value count, depth;  ///< rows or columns; elements along k
  mlir::Value panel;
  auto slots() { return std::array{&from, &leading, &count, &depth, &panel}; }
};
/// Packs `count` rows or columns, in blocks, filled up with zeros.
mlir::func::FuncOp getMatrixPack(KernelBuilder& builder, const MatrixOperand& operand);

} // namespace titan::codegen
