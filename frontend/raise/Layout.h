// What reshapes and transpositions do to dimensions.
#pragma once

#include "dialects/Titan/TensorBuilder.h"

#include "mlir/IR/PatternMatch.h"

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

/// Does nobody read the statistics of a norm?
template <typename Op> bool hasOnlyResult(Op norm) {
  return llvm::all_of(norm->getResults().drop_front(),
                      [](mlir::Value statistic) { return statistic.use_empty(); });
}

/// The dimensions that a norm is over.
llvm::SmallVector<int64_t> normalisedDims(ir::LayerNormOp op);
llvm::SmallVector<int64_t> normalisedDims(ir::RmsNormOp op);

/// The same norm of another operand, over `dims`, of the same extents in the same order: those of
/// rms_norm are the last.
mlir::Value cloneNorm(const ir::TensorBuilder& b, ir::LayerNormOp op, mlir::Value operand,
                      llvm::ArrayRef<int64_t> dims);
mlir::Value cloneNorm(const ir::TensorBuilder& b, ir::RmsNormOp op, mlir::Value operand,
                      llvm::ArrayRef<int64_t> dims);

/// `value` under another shape of as many elements: without an op where it is a splat, a reshape of
/// such a tensor, or a broadcast whose repeated dimensions stay apart.
mlir::Value reshaped(const ir::TensorBuilder& b, mlir::Value value, llvm::ArrayRef<int64_t> shape);

/// `value` transposed: through broadcasts and splats, and composed with a transposition above.
mlir::Value transposed(const ir::TensorBuilder& b, mlir::Value value,
                       llvm::ArrayRef<int64_t> permutation);

/// f(transpose(x), y) becomes transpose(f(x, y')) if `op` is elementwise and each other operand
/// `isFree`, or is transposed in the same way and `several` may be.
llvm::LogicalResult sinkTranspose(mlir::Operation* op, mlir::PatternRewriter& rewriter,
                                  bool several, llvm::function_ref<bool(mlir::Value)> isFree);
/// Patterns that move transpositions behind biases, slices and reshapes.
void addTransposeSinks(mlir::RewritePatternSet& set);
/// The pattern that composes reshapes.
void addReshapeFolds(mlir::RewritePatternSet& set);

/// Does a reshape only add or drop dimensions of extent 1?
bool movesUnitsAlone(ir::ReshapeOp reshape);
bool isIdentity(llvm::ArrayRef<int64_t> permutation);
llvm::SmallVector<int64_t> inverse(llvm::ArrayRef<int64_t> permutation);

} // namespace titan::frontend
