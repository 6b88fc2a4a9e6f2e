// Result types that builders infer and verifiers check.
#pragma once

#include "dialects/Titan/TensorBuilder.h"

namespace titan::ir {

/// f64 stays f64, every other float accumulates in f32.
mlir::Type accumulationType(mlir::Type element);
/// `shape` without the dimensions `dims`.
llvm::SmallVector<int64_t> withoutDims(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims);
/// The result of titan.contract: batch, lhs free and rhs free dimensions, in the accumulation type.
mlir::RankedTensorType contractType(mlir::RankedTensorType lhs, mlir::RankedTensorType rhs,
                                    llvm::ArrayRef<int64_t> lhsBatch,
                                    llvm::ArrayRef<int64_t> rhsBatch,
                                    llvm::ArrayRef<int64_t> lhsContracting,
                                    llvm::ArrayRef<int64_t> rhsContracting);
/// The result of titan.embedding: [indices..., rest of the table...].
mlir::RankedTensorType embeddingType(mlir::RankedTensorType table, mlir::RankedTensorType indices);
/// The results of titan.attention for query [B, T, H, D] and value [B, S, G, E]: [B, T, H, E] and
/// [B, H, T]. Both operands have rank 4.
mlir::RankedTensorType attentionType(mlir::RankedTensorType query, mlir::RankedTensorType value);
mlir::RankedTensorType logSumExpType(mlir::RankedTensorType query);
/// Has titan.attention with this mask (or none) and fill the largest score as a third result, of
/// the second one's type?
bool keepsLargestScore(mlir::Value mask, mlir::FloatAttr fill);

} // namespace titan::ir
