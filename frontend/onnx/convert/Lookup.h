// Indices as ONNX has them: they may count from the end, and a place may be a tuple of them.
#pragma once

#include "frontend/onnx/convert/Conversion.h"

namespace titan::frontend {

/// `indices` of a dimension of `extent` elements; those below 0 count from its end.
mlir::Value countedFromFront(Conversion& c, mlir::Value indices, int64_t extent);

/// Tuples [I..., K] as places [I...] in the first K dimensions of a tensor of `shape`, row-major.
mlir::Value tuplePlaces(Conversion& c, mlir::Value indices, const Shape& shape);

} // namespace titan::frontend
