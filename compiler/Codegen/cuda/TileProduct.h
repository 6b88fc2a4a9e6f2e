// Products of tiles whose sums the threads of a block have in registers, for attention.
//
// A block of 256 threads stands in a square. Each thread has four neighbouring rows and four
// neighbouring columns of a tile of 64 x 64: the 16 threads of half a warp have its rows.
#pragma once

#include "compiler/Codegen/cuda/KernelModule.h"
#include "compiler/Codegen/cuda/ThreadBuilder.h"

#include <memory>

namespace titan::codegen::cuda {

/// A matrix in memory from which 64 lines are taken: element (line, k).
struct Lines {
  mlir::Value pointer;
  mlir::Type element;          ///< f32 or bf16
  int64_t alignment;           ///< of what is contiguous: bytes that divide where it begins
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

  virtual ~TileProduct() = default;

  /// The thread's first row and column of a tile.
  mlir::Value row, column;
  mlir::VectorType run; ///< the thread's columns of one row: 4 x f32

  /// The thread's rows of left rightᵀ over `depth` terms.
  virtual llvm::SmallVector<mlir::Value> multiply(const Lines& left, const Lines& right,
                                                  int64_t depth) = 0;

  /// Writes the thread's rows of a tile that is the left factor of `accumulate`, which sums over
  /// the tile's columns or rows. Its values are numbers of the operands' type.
  virtual void writeTile(llvm::ArrayRef<mlir::Value> rows, bool sumsOverColumns) = 0;
  /// The next product is `accumulate`, and this its first right factor: its copies may begin.
  virtual void prefetch(const Lines& /*right*/) {}
  /// sums += tile right, over the first `depth` (an index, positive) terms rounded up to whole
  /// steps: terms of the tile beyond `depth` are 0. `right` are tiles beside one another; sums are
  /// the thread's rows, of each the pieces in order.
  virtual llvm::SmallVector<mlir::Value> accumulate(llvm::ArrayRef<Lines> right, mlir::Value depth,
                                                    mlir::ValueRange sums) = 0;
  /// Sums of 0 for so many pieces.
  llvm::SmallVector<mlir::Value> zeros(int64_t pieces);

protected:
  explicit TileProduct(ThreadBuilder& builder);

  ThreadBuilder& b;
  mlir::Value thread;
};

/// Of operands of `element`: by tensor cores for bf16, else by multiply-adds. Takes shared memory
/// of the newest entry point for a factor of `pieces` tiles and for a tile.
std::unique_ptr<TileProduct> makeTileProduct(ThreadBuilder& builder, KernelModule& kernels,
                                             mlir::Type element, int64_t pieces);

} // namespace titan::codegen::cuda
