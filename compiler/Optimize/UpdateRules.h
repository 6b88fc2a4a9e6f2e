// One entry per optimizer: which slots a parameter has and the op that updates it.
#pragma once

#include "compiler/Optimize/ParameterGroups.h"
#include "dialects/Titan/TensorBuilder.h"

#include <functional>

namespace titan {

/// The scalars that all updates of a step share.
struct UpdateScalars {
  mlir::Value lr;          ///< f32, after the schedule
  mlir::Value weightDecay; ///< f32, of the parameter's group
  mlir::Value scale;       ///< f32, 1 / count * clip factor
  mlir::Value updates;     ///< i64, updates applied before this one
  mlir::Value apply;       ///< i1
};

struct UpdateRule {
  /// Suffixes of the slots' names, in the order of the op's operands: "exp_avg".
  llvm::SmallVector<llvm::StringRef> slots;
  /// Builds the update; returns the new parameter, then the new slots.
  std::function<llvm::SmallVector<mlir::Value>(
      const ir::TensorBuilder& builder, mlir::Value param, mlir::Value gradient,
      mlir::ValueRange slots, const UpdateScalars& scalars, const ParameterGroup& group)>
      build;
};

/// The rule of `recipe.kind`; nothing if no optimizer has this name.
std::optional<UpdateRule> findUpdateRule(const OptimizerRecipe& recipe);

} // namespace titan
