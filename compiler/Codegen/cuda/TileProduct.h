// Products of tiles whose sums the threads of a block have in registers, for attention.
//
// A block of 256 threads stands in a square. Each thread has four neighbouring rows and four
// neighbouring columns of a tile of 64 x 64: the 16 threads of half a warp have its rows. An
// element is one chain of multiply-adds in f32, in rising order of what is summed over.
#pragma once

#include "compiler/Codegen/cuda/KernelModule.h"
#include "compiler/Codegen/cuda/ThreadBuilder.h"

namespace titan::codegen::cuda {

/// A matrix in memory from which 64 lines are taken: element (line, k).
struct Lines {
  mlir::Value pointer;
  mlir::Type element;          ///< f32 or bf16
  mlir::Value first;           ///< the tile's first line
  int64_t extent;              ///< lines; those beyond are 0
  int64_t stride;              ///< elements from one line to the next
  int64_t depthStride;         ///< from one k to the next; this or `stride` is 1
  mlir::Value firstDepth = {}; ///< what k counts from, if not from 0
  int64_t depthExtent = 0;     ///< with it: all k; those beyond are 0
};

class TileProduct {
public:
  static constexpr int64_t threads = 256, side = 64, cell = 4, lanes = side / cell;
  /// Columns beside one another that a product adds to at once, in tiles.
  static constexpr int64_t mostPieces = 4;

  /// Takes shared memory of the newest entry point for a factor of `pieces` tiles and for a tile.
  TileProduct(ThreadBuilder& builder, KernelModule& kernels, int64_t pieces);

  /// The thread's first row and column of a tile.
  mlir::Value row, column;
  mlir::VectorType run; ///< the thread's columns of one row: 4 x f32

  /// The thread's rows of left rightᵀ over `depth` terms.
  llvm::SmallVector<mlir::Value> multiply(const Lines& left, const Lines& right, int64_t depth);

  /// Writes the thread's rows of a tile that is the left factor of `accumulate`, which sums over
  /// the tile's columns or rows.
  void writeTile(llvm::ArrayRef<mlir::Value> rows, bool sumsOverColumns);
  /// sums += tile right, over the first `depth` (an index, positive) terms rounded up to whole
  /// steps: terms of the tile beyond `depth` are 0. `right` are tiles beside one another; sums are
  /// the thread's rows, of each the pieces in order.
  llvm::SmallVector<mlir::Value> accumulate(llvm::ArrayRef<Lines> right, mlir::Value depth,
                                            mlir::ValueRange sums);
  /// Sums of 0 for so many pieces.
  llvm::SmallVector<mlir::Value> zeros(int64_t pieces);

private:
  static constexpr int64_t steps = 16;      ///< of k that lie in shared memory
  static constexpr int64_t line = side + 4; ///< elements of a line there: moved to other banks

  /// The thread's elements of 64 lines x 16 steps: the first, then every so many lines and steps
  /// on.
  struct Turns {
    mlir::Value line, step;
    int64_t lines, steps;
  };
  Turns turnsOf(const Lines& lines);
  llvm::SmallVector<mlir::Value> read(const Lines& lines, mlir::Value k, int64_t count);
  void write(const Lines& lines, llvm::ArrayRef<mlir::Value> values, int64_t piece);
  void stage(llvm::ArrayRef<Lines> all, mlir::Value k, int64_t count);
  mlir::Value sharedAddress(mlir::Value shared, mlir::Value k, mlir::Value at);
  llvm::SmallVector<mlir::Value> addProducts(mlir::Value left, mlir::Value leftStep,
                                             llvm::ArrayRef<mlir::Value> right, mlir::Value step,
                                             mlir::ValueRange sums);

  ThreadBuilder& b;
  mlir::Value thread, tile;
  llvm::SmallVector<mlir::Value> staged; ///< lines of shared memory, of each piece
};

} // namespace titan::codegen::cuda
