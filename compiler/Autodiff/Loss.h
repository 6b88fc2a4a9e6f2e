// The losses of a recipe as ops.
#pragma once

#include "dialects/Titan/TensorBuilder.h"
#include "runtime/program/Recipe.h"

namespace titan::autodiff {

/// Scalars over one microbatch. `correct` is null unless it is asked for, `weight`
/// unless the classes have weights.
struct LossTerms {
  mlir::Value sum;     ///< f32
  mlir::Value count;   ///< i64, the number of terms of the sum
  mlir::Value weight;  ///< f32, what the sum is divided by; null: the count
  mlir::Value correct; ///< i64
};

/// The type of the targets for an output of type `output` of `micro` samples; null for a loss that
/// takes none. Those of cross-entropy have no dimension of classes; of an output [micro *
/// positions, classes] they are [micro, positions]. An error names the output where its shape does
/// not fit the loss.
mlir::FailureOr<mlir::RankedTensorType> targetType(const LossRecipe& loss,
                                                   mlir::RankedTensorType output,
                                                   llvm::StringRef outputName, int64_t micro,
                                                   mlir::Location loc);

/// Builds the loss of `output` for a microbatch of `rows` samples. With `validRows` (a scalar i64)
/// only the first so many of them count, and `correct` is built.
LossTerms buildLoss(const ir::TensorBuilder& b, const LossRecipe& loss, mlir::Value output,
                    mlir::Value targets, mlir::Value validRows, int64_t rows);

} // namespace titan::autodiff
