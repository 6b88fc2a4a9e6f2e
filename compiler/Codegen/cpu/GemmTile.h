// The register tile of generated matrix products: what one call of the innermost function computes.
#pragma once

#include "compiler/Codegen/cpu/KernelBuilder.h"

#include <array>

namespace titan::codegen {

/// What one multiply-add takes per lane along k: one f32, two bf16 that lie in one 32-bit lane, or
/// one bf16 as f32, where the instruction for pairs is slow or missing; of each pair the second one
/// comes first, as in that instruction. Panels hold such lanes, so that packing moves 32 bits
/// whatever the elements are.
enum class GemmLane { F32, Bf16Pair, WidenedBf16 };

inline int64_t elementsOf(GemmLane lane) { return lane == GemmLane::Bf16Pair ? 2 : 1; }
/// Elements along k that are packed together.
inline int64_t groupOf(GemmLane lane) { return lane == GemmLane::F32 ? 1 : 2; }

/// Groups along k of a packed panel: 48 columns of B are 36 KiB, which stay in the first-level
/// cache with 8 rows of A. Widened, they are twice that: panels decide bits, which widening keeps.
inline constexpr int64_t gemmDepth = 192;

/// A tile of C in registers: rows x vectors accumulators of `width` columns each.
struct GemmTile {
  int64_t rows = 8, vectors = 3, width = 16;
  GemmLane lane = GemmLane::F32;
  int64_t columns() const { return vectors * width; }
  /// Lanes along k of a panel.
  int64_t depth() const { return gemmDepth * groupOf(lane) / elementsOf(lane); }
  /// Of each piece of the next panel of B: as much as a line of this one has.
  int64_t fetchedBytes() const { return columns() * 4; }
  std::string suffix() const; ///< for the names of functions: "8_48_bf16"
};

/// The tile that wastes least on C of `rows` x `columns`.
GemmTile gemmTile(const VectorShape& shape, GemmLane lane, int64_t rows, int64_t columns);

/// How a packed panel of A lies: lane k of row i of a block of tile.rows rows at i * row + k *
/// step, blocks `block` lanes apart.
struct GemmPanelA {
  int64_t row = 0, step = 0, block = 0;
};

struct TileArguments {
  mlir::Value a, panel;        ///< packed
  mlir::Value from, fromRow;   ///< f32, and its elements from row to row
  mlir::Value to, toRow;       ///< likewise
  mlir::Value depth, columns;  ///< lanes along k; columns of C, at most tile.columns()
  mlir::Value continues;       ///< i1
  mlir::Value next, nextBytes; ///< an address that need not be valid; bytes from piece to piece
  auto slots() {
    return std::array{&a,     &panel,   &from,      &fromRow, &to,       &toRow,
                      &depth, &columns, &continues, &next,    &nextBytes};
  }
};
/// to = (continues ? from : 0) + A * panel in f32, for tile.rows rows. Each element is one chain of
/// multiply-adds over k, in order. Meanwhile tile.rows pieces of tile.fetchedBytes() from `next` on
/// come into the second-level cache.
mlir::func::FuncOp getTileFunction(KernelBuilder& builder, const GemmTile& tile,
                                   const GemmPanelA& a);

/// What follows the complete sum.
struct GemmEpilogue {
  bool bias = false, relu = false, toBf16 = false;
  bool any() const { return bias || relu || toBf16; }
  std::string suffix() const; ///< for the names of functions: "_bias_to_bf16"
};

struct EpilogueArguments {
  mlir::Value sums; ///< f32, of which each row has tile.columns() elements
  mlir::Value c, cRow;
  mlir::Value bias; ///< of c's type; any address without one
  mlir::Value rows, columns;
  auto slots() { return std::array{&sums, &c, &cRow, &bias, &rows, &columns}; }
};
/// c = epilogue(sums).
void emitEpilogue(KernelBuilder& builder, const EpilogueArguments& arguments, const GemmTile& tile,
                  const GemmEpilogue& epilogue);
mlir::func::FuncOp getEpilogueFunction(KernelBuilder& builder, const GemmTile& tile,
                                       const GemmEpilogue& epilogue);

} // namespace titan::codegen
