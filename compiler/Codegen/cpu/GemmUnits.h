// The units of a generated product: tiles of C, line by line, and the rectangles that ranges of
// them make.
#pragma once

#include "compiler/Codegen/cpu/KernelBuilder.h"
#include "dialects/Kernel/Kernel.h"

namespace titan::codegen {

/// `count` rows or columns from `first` on.
struct GemmRange {
  mlir::Value first, count;
};

/// The units [begin, end) as rectangles of C, which share what is packed: whole lines of tiles
/// where the range covers them, or a part of one line. Lines run along the shorter side of C, so
/// that a thread's share is nearer to a square.
void forEachRectangle(
    KernelBuilder& builder, kernel::GemmAttr gemm, mlir::Value begin, mlir::Value end,
    llvm::function_ref<void(mlir::Value matrix, GemmRange rows, GemmRange columns)> body);

/// for each of the fewest equal pieces of at most `most` elements, in whole steps.
void forEachPiece(KernelBuilder& builder, GemmRange range, int64_t most, int64_t step,
                  llvm::function_ref<void(GemmRange)> body);

} // namespace titan::codegen
