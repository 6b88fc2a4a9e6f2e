// The pairs of elements that a rotary embedding turns, and the tables of angles it turns them by:
// how models cut tensors into pairs, join them again, and store cosines and sines.
#pragma once

#include "dialects/Titan/TensorBuilder.h"

namespace titan::frontend {

/// Which elements of the last dimension belong together: i and i + D / 2, or 2 i and 2 i + 1.
enum class Pairing { Halves, Neighbours };

/// One element of each pair: the first or the second.
struct Part {
  mlir::Value source;               ///< a reshape of
  llvm::SmallVector<int64_t> shape; ///< [..., D]
  Pairing pairing = Pairing::Halves;
  bool second = false;
};

/// A [..., D / 2] slice of [..., D], or a column of the [..., D / 2, 2] that it was reshaped to:
/// [..., D / 2], or [..., D / 2, 1] where complex numbers were taken apart.
std::optional<Part> matchPart(mlir::Value value);
/// Is `part` one of x?
bool isWhole(const Part& part, mlir::Value x);

/// Two tensors [..., D / 2] or columns [..., D / 2, 1] joined to [..., D], in whatever shape.
struct Join {
  mlir::Value first, second;
  Pairing pairing = Pairing::Halves;
};
std::optional<Join> matchJoin(mlir::Value value);

/// The angles of one tensor: per position, and perhaps per sample.
struct Table {
  mlir::Value value;
  llvm::SmallVector<int64_t>
      shape; ///< to give it: [T, R] or [B, T, R], R pairs or twice as many elements
  llvm::SmallVector<int64_t> dims; ///< of the rotated tensor, one for each dimension of `shape`
};
/// A table that is repeated to [B, _, _, D], to [B, T, D] of one head, or to columns
/// [B, _, _, D / 2, 1].
std::optional<Table> matchTable(mlir::Value value);
/// The dimension of the rotated tensor that holds positions: 1 or 2.
inline int64_t positionDim(const Table& table) { return table.dims[table.dims.size() - 2]; }

/// Is each element of `a` the negative of that of `b`?
bool isNegated(const Table& a, const Table& b);

/// Is each pair of columns of `table` one column twice? Exporters write the concatenation of the
/// angles with themselves.
bool repeatsPairs(mlir::Value table, Pairing pairing);
/// Every first element of the pairs of `table`, of which `repeatsPairs` holds.
mlir::Value firstOfPairs(const ir::TensorBuilder& b, mlir::Value table, Pairing pairing);

inline int64_t lastExtent(mlir::Value value) { return ir::tensorType(value).getShape().back(); }
/// Is `slice` the whole of every dimension but the last?
bool cutsLastOnly(ir::SliceOp slice);

} // namespace titan::frontend
