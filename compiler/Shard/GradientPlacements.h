// What the update takes of each gradient, for the values that become it.
#pragma once

#include "compiler/Shard/ValuePlacement.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/program/Recipe.h"

#include "llvm/ADT/DenseMap.h"

namespace titan {

/// By the strategy of a recipe, and by the state that an optimizer's op updates: no name decides.
///
/// A gradient is followed from the op that reads it back to the sums of the loop, through what
/// passes terms one by one, and from there to the accumulators. So the placement of an accumulator
/// that ranks have exchanged is that of the gradient.
class GradientPlacements {
public:
  /// `recipe` says the strategy, `mesh` the axes.
  GradientPlacements(mlir::func::FuncOp function, const MeshRecipe& recipe, dist::MeshAttr mesh);

  /// What of the sum `value` is taken once ranks have exchanged their terms; replicated where it
  /// becomes no gradient.
  ValuePlacement operator[](mlir::Value value) const;

private:
  void mark(mlir::Value value, const ValuePlacement& placement);

  size_t axes_;
  llvm::DenseMap<mlir::Value, ValuePlacement> placements_;
};

} // namespace titan
