// What leads to the softmax of attention, and away from it.
#pragma once

#include "frontend/raise/AttentionMask.h"

namespace titan::frontend {

/// What stands between the product of queries and keys and the softmax. Roles are the numbers of
/// the softmax's dimensions: between, dimensions may be transposed and those of extent 1 come and
/// go.
struct Scores {
  View product;
  double scale = 1;
  llvm::SmallVector<View> factors;   ///< that the product alone is multiplied by: a temperature
  llvm::SmallVector<MaskTerm> terms; ///< in the order of the computation
  unsigned steps = 0;                ///< that were taken, also in vain

  ir::ContractOp contraction() const { return product.value.getDefiningOp<ir::ContractOp>(); }
};

/// Follows the scores up from `view`; `after` is the factor that later steps apply. False: they are
/// no product that is only scaled, masked and cast, or it is further than 256 steps away.
bool followScores(const View& view, double after, Scores& scores);

/// What stands between the softmax and the product with the values.
struct Probabilities {
  View view; ///< the product's operand
  ir::ContractOp product;
  bool isLhs = true; ///< the probabilities are the product's left operand
  ir::DropoutOp dropout;
  llvm::SmallVector<int64_t> dropoutRoles; ///< of its operand
  std::string problem;
};

/// Follows the probabilities down from `view`: without a product there is `problem`.
Probabilities followProbabilities(View view);

} // namespace titan::frontend
