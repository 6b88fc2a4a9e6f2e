// What the verifiers and factor rules of several families share. A family's definitions are in
// its .td, its verifiers, folds and factors in the .cpp beside it. The label in a verifier's
// message is the constraint's number in the op's description. Folds keep every bit: x * 1 folds, x
// + 0 does not (-0 + 0 is +0).
#pragma once

#include "dialects/Titan/ResultTypes.h"

namespace titan::ir {

/// Do `values` name each dimension of a tensor of `rank` once?
bool isPermutation(llvm::ArrayRef<int64_t> values, int64_t rank);
/// Are `values` dimensions of a tensor of `rank`, in increasing order?
bool isIncreasingWithin(llvm::ArrayRef<int64_t> values, int64_t rank);
/// (C1) of the ops that have one `dim`.
llvm::LogicalResult verifyDim(mlir::Operation* op, int64_t dim, int64_t rank);

/// No factors; a place for each dimension of each operand and result.
ShardingRule emptyRule(mlir::Operation* op);
/// One factor per dimension, shared by all tensors of the same rank; scalars stay whole.
/// `wholeDims` cannot be split.
ShardingRule elementwiseRule(mlir::Operation* op, llvm::ArrayRef<int64_t> wholeDims = {});

} // namespace titan::ir
