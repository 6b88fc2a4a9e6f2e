// The functions that generated matrix products share: packing a panel of B, and a register tile of
// C.
#pragma once

#include "compiler/Codegen/cpu/FusedKernel.h"

namespace titan::codegen {

/// Rows of a register tile of C; what is left over goes row by row.
inline constexpr int64_t gemmTileRows = 4;

/// Columns of a register tile: four vectors where there are 32 registers, two where there are 16.
int64_t gemmTileColumns(const VectorShape& shape);

/// void(ptr b, i64 ldb, i64 depth, i64 columns, ptr panel): panel[k][j] = op(B)[k][j] for k <
/// depth; columns from `columns` on are 0.
mlir::func::FuncOp getPackFunction(mlir::OpBuilder& builder, mlir::Location loc, bool transposed,
                                   const VectorShape& shape);

/// void(ptr a, i64 aRow, i64 aColumn, ptr panel, ptr c, i64 ldc, i64 depth, i64 columns, i1
/// continues, i1 hasBias, ptr bias, i1 relu): C = (continues ? C : 0) + A * panel, then bias and
/// relu, on `rows` rows. Strides count elements.
mlir::func::FuncOp getTileFunction(mlir::OpBuilder& builder, mlir::Location loc, int64_t rows,
                                   const VectorShape& shape);

} // namespace titan::codegen
