// What an unrolled loop computed row by row, computed of all rows at once.
#pragma once

#include "frontend/onnx/convert/Conversion.h"

namespace titan::frontend {

/// [rows, shape...] whose row i is `values[i]`, where these are computed alike of consecutive runs
/// of one tensor. Null: they are not.
mlir::Value rowsOf(const Conversion& c, mlir::ArrayRef<mlir::Value> values);

/// `values`, all of one shape, along a new first dimension. Error: they differ in shape.
Result<mlir::Value> stacked(const Conversion& c, mlir::ArrayRef<mlir::Value> values);

} // namespace titan::frontend
