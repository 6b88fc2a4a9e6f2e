// Which row of a table an index names.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace titan::codegen {

/// The row that number `i` of the indices at `pointer` names, which have the type `type`: an index
/// below 0 counts as 0, one from `entries` on as the last. `i` and the row are of type index.
mlir::Value loadEntry(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value pointer,
                      mlir::Value i, mlir::IntegerType type, int64_t entries);

} // namespace titan::codegen
