// What LayerNorm and RMSNorm have in common: means, roots of mean squares, and the scale that
// follows.
#pragma once

#include "dialects/Titan/TensorBuilder.h"
#include "frontend/raise/Matching.h"

namespace titan::frontend {

/// The operand of a mean over the dimensions from `axis` on: sum / N.
struct Mean {
  mlir::Value operand;
  int64_t axis = -1;
};
std::optional<Mean> matchMean(mlir::Value value);

/// The x of x * x or x^2; null: no square.
mlir::Value squaredValue(mlir::Value value);

/// sqrt(mean(x^2) + epsilon)
struct RootMeanSquare {
  mlir::Value operand; ///< x
  int64_t axis = -1;
  double epsilon = 0;
};

/// What x / sqrt(..), x * (1 / sqrt(..)) or x * rsqrt(..) divide by, if it is a root mean square.
/// `Op` is ir::DivOp or ir::MulOp, `value` its right operand.
template <typename Op> std::optional<RootMeanSquare> matchDivisor(mlir::Value value);

/// max(sqrt(sum(x^2)), floor): the length of x, as torch.nn.functional.normalize divides by it.
struct Length {
  mlir::Value operand;          ///< x
  int64_t axis = -1, count = 0; ///< elements that are summed
  double floor = 0;
};
std::optional<Length> matchLength(mlir::Value divisor);

/// The tensor of the dimensions from `axis` on that `value` repeats over the leading ones; null: it
/// is something else.
mlir::Value trailingOperand(mlir::Value value, int64_t axis);

} // namespace titan::frontend
