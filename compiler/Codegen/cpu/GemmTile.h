// The functions that generated matrix products share: packing a panel of B, and a register tile of
// C.
#pragma once

#include "compiler/Codegen/cpu/FusedKernel.h"

namespace titan::codegen {

/// A register tile of C: rows x vectors accumulators. What is left over of the rows goes row by
/// row.
struct GemmTile {
  int64_t rows = 4, vectors = 4, width = 16;
  int64_t columns() const { return vectors * width; }
};

/// For matrices (or tiles of the grid) of `columns` columns: as wide as they are, up to the
/// registers, and with at least eight chains of multiply-adds, which hide their latency.
GemmTile gemmTile(const VectorShape& shape, int64_t columns);

/// void(ptr b, i64 ldb, i64 depth, i64 columns, ptr panel): panel[k][j] = op(B)[k][j] for k <
/// depth; columns from `columns` on are 0.
mlir::func::FuncOp getPackFunction(mlir::OpBuilder& builder, mlir::Location loc, bool transposed,
                                   const GemmTile& tile);

/// void(ptr a, i64 aRow, i64 aColumn, ptr panel, ptr c, i64 ldc, i64 depth, i64 columns, i1
/// continues, i1 hasBias, ptr bias, i1 relu): C = (continues ? C : 0) + A * panel, then bias and
/// relu, on `rows` rows. Strides count elements.
mlir::func::FuncOp getTileFunction(mlir::OpBuilder& builder, mlir::Location loc,
                                   const GemmTile& tile);

} // namespace titan::codegen
