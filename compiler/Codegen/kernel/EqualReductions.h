// Reductions that are one computation, each on ins of its own: the norms of many gradients.
#pragma once

#include "compiler/Codegen/kernel/LoopNest.h"

namespace titan::codegen {

struct EqualReductions {
  llvm::SmallVector<const Reduction*> members;
  /// The ins that the first member reads along the dimensions that it reduces, and for each of them
  /// the in that each member has in its place.
  llvm::SmallVector<unsigned> ins;
  llvm::SmallVector<llvm::SmallVector<unsigned>> places;
};

/// Divides `group`, which runs over the same dimensions, into classes of equal ones, in the order
/// of their first members. What `isStored` is read from where it lies, and no other value is equal
/// to it.
llvm::SmallVector<EqualReductions>
findEqualReductions(const LoopNest& nest, llvm::ArrayRef<const Reduction*> group,
                    llvm::function_ref<bool(mlir::Value)> isStored);

} // namespace titan::codegen
