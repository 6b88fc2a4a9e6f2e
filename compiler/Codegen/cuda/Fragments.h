// Products of bf16 by warps: tiles of the factors in shared memory, fragments of them in registers
// (ldmatrix), and their products (mma.sync).
//
// A tile has `outer` rows or columns of the result and `depth` terms. It lies in lines of chunks: 8
// neighbouring elements of memory, 16 bytes. Chunks of a line are exchanged by the line's number,
// so that neither the 8 chunks that a matrix of ldmatrix takes nor 8 that are written one after
// another meet in a bank.
#pragma once

#include "compiler/Codegen/cuda/ThreadBuilder.h"

namespace titan::codegen::cuda {

/// Rows or columns of a fragment, and terms. The warp holds it as four registers a lane: both
/// halves of the rows over the first 8 terms, then over the others.
inline constexpr int64_t fragmentSide = 16, fragmentDepth = 16;
/// Columns of one mma: half a fragment of the right factor.
inline constexpr int64_t productColumns = 8;

struct FragmentTile {
  static constexpr int64_t chunk = 8, chunkBytes = 16;

  int64_t outer;   ///< a power of two, 16 or more
  bool alongDepth; ///< neighbours in memory are terms; else they are rows or columns
  int64_t depth;   ///< a power of two, 16 or more

  int64_t lines() const { return alongDepth ? outer : depth; }
  int64_t chunks() const { return (alongDepth ? depth : outer) / chunk; } ///< of a line
  int64_t bytes() const { return lines() * chunks() * chunkBytes; }

  /// Bytes from the tile on to a chunk. Places are i32.
  mlir::Value offset(ThreadBuilder& b, mlir::Value line, mlir::Value chunk) const;
  /// Bytes from the tile on to what `lane` names of a fragment. It begins at `first` + `more` of
  /// the outer places (multiples of 16; `more` is below what divides `first`) and at term `k`.
  mlir::Value laneOffset(ThreadBuilder& b, mlir::Value lane, mlir::Value first, int64_t more,
                         int64_t k) const;
  /// The fragment whose lane offset leads to `address`: four i32, of (outer half, half of the
  /// terms) (0, 0), (1, 0), (0, 1), (1, 1).
  llvm::SmallVector<mlir::Value> load(ThreadBuilder& b, mlir::Value address) const;
};

/// sums + left right: `sums` are four f32 of 16 rows and 8 columns, `half` says which columns of
/// the right fragment. Of lane l they are rows l / 4 and 8 more, of each columns 2 (l % 4) and the
/// next.
llvm::SmallVector<mlir::Value> multiplyFragments(ThreadBuilder& b, mlir::ValueRange left,
                                                 mlir::ValueRange right, int64_t half,
                                                 mlir::ValueRange sums);

/// Copies a chunk from global to shared memory while the thread goes on. `alignment` divides the
/// source, 2 at least. `read` (i32), if it is there, is how many bytes are read: the others are 0.
void copyChunk(ThreadBuilder& b, mlir::Value to, mlir::Value from, mlir::Value read,
               int64_t alignment);
/// Of a chunk from `at` (an index) on, how many bytes lie below element `extent` (i32).
mlir::Value bytesBelow(ThreadBuilder& b, mlir::Value at, int64_t extent);
/// Ends a group of the thread's copies.
void commitCopies(ThreadBuilder& b);
/// Waits for all groups but the newest `left`.
void waitForCopies(ThreadBuilder& b, int64_t left);

} // namespace titan::codegen::cuda
