// Indices as ONNX has them: they may count from the end, and a place may be a tuple of them.
#pragma once

#include "frontend/onnx/convert/Conversion.h"

#include <span>

namespace titan::frontend {

/// `indices` of a dimension of `extent` elements; those below 0 count from its end.
mlir::Value countedFromFront(Conversion& c, mlir::Value indices, int64_t extent);

/// Tuples [I..., K] as places [I...] in K dimensions of `extents`, row-major. Each component is
/// within its own.
mlir::Value tuplePlaces(Conversion& c, mlir::Value indices, std::span<const int64_t> extents);

/// Error: an index that is known is outside of its dimension. Those of the last dimension take
/// turns in `extents`.
Status checkTuples(Conversion& c, const HostTensor& indices, std::span<const int64_t> extents);

} // namespace titan::frontend
