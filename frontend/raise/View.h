// A value whose dimensions have roles: batch, position, head, width. Roles are followed through ops
// that only move elements, so that a matcher need not know in which layout an exporter keeps its
// tensors.
#pragma once

#include "dialects/Titan/TensorBuilder.h"

namespace titan::frontend {

struct View {
  /// The role of a dimension of extent 1 that stands for nothing.
  static constexpr int64_t kUnit = -1;

  mlir::Value value;
  llvm::SmallVector<int64_t> roles; ///< one for each dimension

  int64_t extent(int64_t role) const; ///< 1 where no dimension has the role
  bool has(int64_t role) const { return llvm::is_contained(roles, role); }
};

/// Of the transpositions and reshapes by dimensions of extent 1 that made the value, none.
View withoutOrder(View view);

/// The roles of `result`, which a transposition or a reshape by dimensions of extent 1 makes of
/// `view`; nothing for other ops.
std::optional<View> reordered(const View& view, mlir::Operation* op);

/// Of the broadcasts, transpositions and reshapes by dimensions of extent 1 that made the value,
/// none. Roles that it only repeats along are gone.
View withoutMovement(View view);

/// Without a repetition of each element along `role` n times in a row (grouped-query attention's
/// repeated heads): `role` then has the n-th part of the extent. The view itself where there is no
/// such repetition.
View withoutRepetition(const View& view, int64_t role);

/// The value with one dimension for each of `roles`, in that order; extent 1 where the view lacks
/// it. Dimensions of other roles have extent 1.
mlir::Value arranged(const ir::TensorBuilder& b, const View& view, llvm::ArrayRef<int64_t> roles);

} // namespace titan::frontend
