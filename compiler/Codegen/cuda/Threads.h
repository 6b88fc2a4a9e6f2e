// What a thread knows of its place, and how threads exchange values.
#pragma once

#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/Builders.h"

namespace titan::codegen::cuda {

/// The number of the block in the grid, of the thread in its block: indices.
mlir::Value blockNumber(mlir::OpBuilder& builder, mlir::Location loc);
mlir::Value threadNumber(mlir::OpBuilder& builder, mlir::Location loc);

/// Threads of a block whose threads have nothing to do with each other, and blocks for `units` of
/// work, one a thread.
inline constexpr int64_t flatThreads = 256;
int64_t flatBlocks(int64_t units);

/// Emits what each of those threads does with its unit.
void overUnits(mlir::OpBuilder& builder, mlir::Location loc, int64_t units,
               llvm::function_ref<void(mlir::Value unit)> body);

/// All threads of the block have come here, and see what the others wrote before.
void emitBarrier(mlir::OpBuilder& builder, mlir::Location loc);

/// The same of the lanes of a warp, which all take part.
void emitWarpBarrier(mlir::OpBuilder& builder, mlir::Location loc);

/// The lanes of the warp whose `flag` is set, as bits of an i32. All take part.
mlir::Value ballot(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value flag);

/// `value` (of 32 or 64 bits) of the lane whose number differs in the bits of `distance`. All lanes
/// of the warp take part.
mlir::Value shuffleXor(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value value,
                       int64_t distance);

/// Combines the values of `lanes` neighbouring lanes, a power of two up to 32, in each of them:
/// with the lane at half the distance first, then at a quarter. Both lanes of a pair compute the
/// same bits.
mlir::Value combineLanes(mlir::OpBuilder& builder, mlir::Location loc, kernel::ReduceKind kind,
                         mlir::Value value, int64_t lanes);

/// Splits `number` into coordinates of `extents`, the last running fastest. The first is not
/// reduced: `number` is within the product.
llvm::SmallVector<mlir::Value> splitNumber(mlir::OpBuilder& builder, mlir::Location loc,
                                           mlir::Value number, llvm::ArrayRef<int64_t> extents);

} // namespace titan::codegen::cuda
