// What a reduction or an update does with two values, and where a reduction begins.
#pragma once

#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/Builders.h"

namespace titan::codegen {

/// The value that changes nothing, as a scalar (length 0) or a vector.
mlir::Value reductionIdentity(mlir::OpBuilder& builder, mlir::Location loc, kernel::ReduceKind kind,
                              mlir::Type element, int64_t length);
mlir::Value combine(mlir::OpBuilder& builder, mlir::Location loc, kernel::ReduceKind kind,
                    mlir::Value a, mlir::Value b);
/// What `update` makes of `x`, as titan.scatter has it. NaN wins max and min.
mlir::Value combineUpdate(mlir::OpBuilder& builder, mlir::Location loc, ir::ScatterKind kind,
                          mlir::Value x, mlir::Value update, bool isUnsigned);
/// The lanes of a vector (a power of two), combined by halves.
mlir::Value foldLanes(mlir::OpBuilder& builder, mlir::Location loc, kernel::ReduceKind kind,
                      mlir::Value vector);

} // namespace titan::codegen
