// Products of tiles of bf16 on tensor cores.
//
// Both factors lie in shared memory, and each warp multiplies 16 rows by 32 columns of them (mma).
// The sums go through shared memory to the threads that have them. An element is one chain of mma
// in f32 over what `multiply` sums; `accumulate` adds one over the 64 terms of the tile to its sum.
#pragma once

#include "compiler/Codegen/cuda/Fragments.h"
#include "compiler/Codegen/cuda/TileProduct.h"

namespace titan::codegen::cuda {

class TensorTiles : public TileProduct {
public:
  TensorTiles(ThreadBuilder& builder, KernelModule& kernels);

  llvm::SmallVector<mlir::Value> multiply(const Lines& left, const Lines& right,
                                          int64_t depth) override;
  void writeTile(llvm::ArrayRef<mlir::Value> rows, bool sumsOverColumns) override;
  void prefetch(const Lines& right) override;
  llvm::SmallVector<mlir::Value> accumulate(llvm::ArrayRef<Lines> right, mlir::Value depth,
                                            mlir::ValueRange sums) override;

private:
  static constexpr int64_t warpRows = fragmentSide, warpColumns = 2 * fragmentSide;
  static constexpr int64_t sumCount = warpRows * warpColumns / warpSize; ///< of a lane
  static constexpr int64_t line = side + 8; ///< sums of a line: moved to other banks

  static FragmentTile tileOf(const Lines& lines) { return {side, lines.depthStride == 1, side}; }

  void stage(const Lines& lines, mlir::Value shared, mlir::Value k, int64_t count);
  void copy(const Lines& lines, mlir::Value shared, mlir::Value k, int64_t count,
            mlir::Value inTile, mlir::Value part);
  void arrive();
  llvm::SmallVector<mlir::Value> addProducts(const FragmentTile& left, const FragmentTile& right,
                                             int64_t terms, mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> exchange(mlir::ValueRange sums,
                                          llvm::function_ref<void()> meanwhile);
  static int64_t termsOf(const Lines& right);
  llvm::SmallVector<mlir::Value> noSums() {
    return llvm::SmallVector<mlir::Value>(sumCount, b.f32(0));
  }
  mlir::Value word(mlir::Value index) {
    return b.create<mlir::arith::IndexCastUIOp>(b.builder.getI32Type(), index);
  }
  mlir::Value index(mlir::Value word) {
    return b.create<mlir::arith::IndexCastUIOp>(b.builder.getIndexType(), word);
  }
  mlir::Value byteAddress(mlir::Value shared, mlir::Value offset) {
    return b.address(shared, b.builder.getI8Type(), offset);
  }

  mlir::Value leftShared, rightShared, exchanged;
  mlir::Value lane, warpRow, warpColumn; ///< i32
  bool heldAlongDepth = false;           ///< of the tile that `writeTile` wrote
  bool isPrefetched = false;             ///< the first right factor of `accumulate`
};

} // namespace titan::codegen::cuda
