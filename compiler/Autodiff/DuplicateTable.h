// Ops by what they compute.
#pragma once

#include "mlir/IR/Operation.h"

#include <cstdint>
#include <unordered_map>

namespace titan::autodiff {

/// The ops that were seen, for who looks for a second one that computes the same: an op of the same
/// name on the same operands, with the same attributes but for those that say where it comes from.
class DuplicateTable {
public:
  /// Equal for ops that compute the same.
  static uint64_t hashOf(mlir::Operation* op);

  /// The first op seen that computes what `op` does: `op` itself, which is seen from now on, if
  /// there is none. `hash` is hashOf(op); any number that equal ops share does.
  mlir::Operation* firstLike(mlir::Operation* op, uint64_t hash);

private:
  struct Entry {
    mlir::Operation* op;
    llvm::SmallVector<mlir::Attribute, 2> meaning;
  };
  /// In program order below a hash. Not a DenseMap: that reserves two keys, and a hash may be any.
  std::unordered_map<uint64_t, llvm::SmallVector<Entry, 1>> seen_;
};

} // namespace titan::autodiff
