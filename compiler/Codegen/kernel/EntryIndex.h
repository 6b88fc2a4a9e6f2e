// Which row of a table an index names.
#pragma once

#include "dialects/Titan/ScatterShape.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace titan::codegen {

/// The row that number `i` of the indices at `pointer` names, which have the type `type`: an index
/// below 0 counts as 0, one from `entries` on as the last. `i` and the row are of type index.
mlir::Value loadEntry(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value pointer,
                      mlir::Value i, mlir::IntegerType type, int64_t entries);

/// Row `entry` of those that share the outer and inner coordinates of index `i`.
mlir::Value rowOfEntry(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value i,
                       mlir::Value entry, const ir::ScatterShape& shape);

/// The same of a table whose rows are [outer, entries, inner], by indices [outer, rows, inner]:
/// `routine` is an #kernel.embedding or #kernel.embedding_grad.
template <typename Routine>
mlir::Value loadRow(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value pointer,
                    mlir::Value i, mlir::IntegerType type, Routine routine) {
  mlir::Value entry = loadEntry(builder, loc, pointer, i, type, routine.getEntries());
  return rowOfEntry(builder, loc, i, entry,
                    {.outer = routine.getOuter(),
                     .entries = routine.getEntries(),
                     .inner = routine.getInner(),
                     .rows = routine.getRows()});
}

} // namespace titan::codegen
