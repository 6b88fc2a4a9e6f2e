// Products of tiles by multiply-adds: an element is one chain of them in f32, in rising order of
// what is summed over.
#pragma once

#include "compiler/Codegen/cuda/TileProduct.h"

namespace titan::codegen::cuda {

class ScalarTiles : public TileProduct {
public:
  ScalarTiles(ThreadBuilder& builder, KernelModule& kernels, int64_t pieces);

  llvm::SmallVector<mlir::Value> multiply(const Lines& left, const Lines& right,
                                          int64_t depth) override;
  void writeTile(llvm::ArrayRef<mlir::Value> rows, bool sumsOverColumns) override;
  llvm::SmallVector<mlir::Value> accumulate(llvm::ArrayRef<Lines> right, mlir::Value depth,
                                            mlir::ValueRange sums) override;

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

  mlir::Value tile;
  llvm::SmallVector<mlir::Value> staged; ///< lines of shared memory, of each piece
};

} // namespace titan::codegen::cuda
