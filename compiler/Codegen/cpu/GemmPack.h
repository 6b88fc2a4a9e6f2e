// Packing of operands for generated matrix products: the register tile then reads one contiguous
// stream of B, and A without collisions in the cache.
#pragma once

#include "compiler/Codegen/cpu/GemmTile.h"

namespace titan::codegen {

struct PackBArguments {
  mlir::Value b, leading;     ///< elements from line to line, as B is stored
  mlir::Value depth, columns; ///< elements along k
  mlir::Value panel;
  auto slots() { return std::array{&b, &leading, &depth, &columns, &panel}; }
};
/// panel[k][j] = lane k of column j of op(B), for `depth` elements along k, the last group filled
/// up with zeros; columns from `columns` to tile.columns() are 0. With `rounds` B is f32 and
/// becomes bf16.
mlir::func::FuncOp getPackB(KernelBuilder& builder, const GemmTile& tile, bool transposed,
                            bool rounds);

struct PackLinesArguments {
  mlir::Value b;      ///< what the places count from
  mlir::Value places; ///< i64: where each line's first column of the panel is, in elements
  mlir::Value depth;  ///< lines
  mlir::Value panel;
  auto slots() { return std::array{&b, &places, &depth, &panel}; }
};
/// The same of a B whose lines lie anywhere, for a panel of which all columns exist.
mlir::func::FuncOp getPackLines(KernelBuilder& builder, const GemmTile& tile, bool rounds);

struct PackAArguments {
  mlir::Value a, leading;  ///< elements from line to line, as A is stored
  mlir::Value rows, depth; ///< elements along k
  mlir::Value panel;
  auto slots() { return std::array{&a, &leading, &rows, &depth, &panel}; }
};
/// Rows of op(A) as `layout` says, the last group filled up with zeros.
mlir::func::FuncOp getPackA(KernelBuilder& builder, const GemmTile& tile, const GemmPanelA& layout,
                            bool transposed);

/// Rows that are contiguous stay so; transposed ones lie side by side in blocks of a tile's rows.
GemmPanelA panelOfA(const GemmTile& tile, bool transposed);

} // namespace titan::codegen
