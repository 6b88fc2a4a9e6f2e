// What leads to the softmax of attention, and away from it.
#pragma once

#include "frontend/raise/AttentionMask.h"

namespace titan::frontend {

/// What stands between the product of queries and keys and the softmax.
struct Scores {
  ir::ContractOp product;
  double scale = 1;
  /// In the order of the computation; views have the dimensions of the scores, their roles to come.
  llvm::SmallVector<MaskTerm> terms;
};

/// Follows the scores up from `value`; `after` is the factor that later steps apply. False: they
/// are no product that is only scaled, masked and cast.
bool followScores(mlir::Value value, double after, Scores& scores);

/// What stands between the softmax and the product with the values.
struct Probabilities {
  ir::ContractOp product;
  bool isLhs = true; ///< the probabilities are the product's left operand
  ir::DropoutOp dropout;
  std::string problem;
};

/// Follows the probabilities down from `value`: without a product there is `problem`.
Probabilities followProbabilities(mlir::Value value);

} // namespace titan::frontend
