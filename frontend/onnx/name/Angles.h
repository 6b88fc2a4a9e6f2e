// Tables of the sines and cosines of positions, which no parameter starts from.
#pragma once

#include "frontend/onnx/read/Graph.h"

namespace titan::frontend {

/// Sines and cosines by position: zeros and ones at position 0, and pairs of columns, of one
/// distance in the row, whose squares sum to one at every position. Rows of zeros (padding) may be
/// among them.
bool isAngleTable(const Tensor& tensor);
/// The same of two tensors, the cosines of some angles and their sines.
bool areCosinesAndSines(const Tensor& a, const Tensor& b);
/// Either of both, beside any initializer of `graph`.
bool holdsAngles(const Tensor& tensor, const Graph& graph);

} // namespace titan::frontend
