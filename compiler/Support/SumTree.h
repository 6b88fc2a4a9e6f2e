// A sum of many terms, written as additions of two.
#pragma once

#include "dialects/Titan/Titan.h"

namespace titan {

/// The terms of the sum that `root` computes, from left to right: the operands of all additions of
/// its block that serve nothing else.
struct SumTree {
  explicit SumTree(ir::AddOp root);
  /// Is `add` the last addition of its sum?
  static bool isRoot(ir::AddOp add);
  /// Replaces the sum by `value` and erases its additions.
  void replaceBy(mlir::Value value);

  ir::AddOp root;
  llvm::SmallVector<ir::AddOp> additions; ///< each before its operands' additions
  llvm::SmallVector<mlir::Value> terms;
};

} // namespace titan
