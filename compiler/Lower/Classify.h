// The class of a fused kernel: which of codegen's loop shapes its reductions fit.
#pragma once

#include "dialects/Kernel/Kernel.h"

namespace titan::lower {

/// How the dimensions of a kernel's space divide: [outer..., rows..., inner...]. Without a column
/// reduction `rows` is empty; without any reduction all dimensions are outer.
struct Loops {
  kernel::KernelClass kernelClass = kernel::KernelClass::Flat;
  unsigned firstRow = 0;   ///< the first dimension of `rows`
  unsigned firstInner = 0; ///< the first dimension of `inner`
};

/// The loops of `op` by the rules of KernelClass (KernelDialect.td); failure, with `why` set, where
/// the reductions fit no class.
mlir::FailureOr<Loops> classify(kernel::FusedOp op, std::string* why = nullptr);

/// Is `reduce` over the innermost dimensions of its kernel? (Its elements are then combined across
/// a vector's lanes, otherwise row after row: the two give different bits, so fusion never turns
/// one into the other.)
bool isRowReduction(kernel::ReduceOp reduce);
/// Is one over `dims` of `space`?
bool isRowReduction(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> space);

/// The linear distance, in elements, between neighbours along dimension `dim` of the space in an
/// operand of shape `shape` read through `map`.
int64_t strideAlong(mlir::AffineMap map, llvm::ArrayRef<int64_t> shape, unsigned dim);

} // namespace titan::lower
