// What reshapes and transpositions do to dimensions.
#pragma once

#include "dialects/Titan/TensorBuilder.h"

namespace titan::frontend {

/// For each dimension of a reshape's result, the dimensions of its operand that it consists of.
using DimGroups = llvm::SmallVector<llvm::SmallVector<int64_t, 2>>;

/// The groups if the reshape from `from` to `to` only merges neighbouring dimensions (or drops
/// dimensions of extent 1, into their left neighbour where there is one) and leaves the last one
/// alone.
std::optional<DimGroups> matchLeadingMerge(llvm::ArrayRef<int64_t> from,
                                           llvm::ArrayRef<int64_t> to);

/// The groups if the reshape from `from` to `to` merges neighbouring dimensions, and adds or drops
/// dimensions of extent 1, which are in no group.
std::optional<DimGroups> matchMerge(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

/// An op that computes each element from the same element of each operand, of one shape.
bool isElementwise(mlir::Operation* op);

/// A copy of elementwise `op` on `operands`, of their shape.
mlir::Value cloneElementwise(mlir::OpBuilder& builder, mlir::Operation* op,
                             mlir::ValueRange operands);

/// `value` under another shape of as many elements: without an op where it is a splat, a reshape of
/// such a tensor, or a broadcast whose repeated dimensions stay apart.
mlir::Value reshaped(const ir::TensorBuilder& b, mlir::Value value, llvm::ArrayRef<int64_t> shape);

/// `value` transposed: through broadcasts and splats, and composed with a transposition above.
mlir::Value transposed(const ir::TensorBuilder& b, mlir::Value value,
                       llvm::ArrayRef<int64_t> permutation);

bool isIdentity(llvm::ArrayRef<int64_t> permutation);
llvm::SmallVector<int64_t> inverse(llvm::ArrayRef<int64_t> permutation);

} // namespace titan::frontend
