// Packing of operands for generated matrix products: the register tile then reads one contiguous
// stream of B, and A without collisions in the cache.
#pragma once

#include "compiler/Codegen/cpu/GemmTile.h"

namespace titan::codegen {

/// void(ptr b, i64 ldb, i64 depth, i64 columns, ptr panel): panel[k][j] = lane k of column j of
/// op(B), for `depth` elements along k, the last lane filled up with zeros; columns from `columns`
/// to tile.columns() are 0. With `rounds` B is f32 and becomes pairs of bf16.
mlir::func::FuncOp getPackB(mlir::OpBuilder& builder, mlir::Location loc, const GemmTile& tile,
                            bool transposed, bool rounds);

/// void(ptr a, i64 lda, i64 rows, i64 depth, ptr panel): rows of op(A) as `layout` says, the last
/// lane filled up with zeros.
mlir::func::FuncOp getPackA(mlir::OpBuilder& builder, mlir::Location loc, const GemmTile& tile,
                            const GemmPanelA& layout, bool transposed);

/// Rows that are contiguous stay so; transposed ones lie side by side in blocks of a tile's rows.
GemmPanelA panelOfA(const GemmTile& tile, bool transposed);

} // namespace titan::codegen
