// What the values of a tensor tell where names do not. All answer no for data that is not there.
#pragma once

#include "frontend/onnx/read/Tensor.h"

namespace titan::frontend {

/// Are all elements equal, as in what norms and biases start from?
bool isUniform(const Tensor& tensor);
/// Are all its bytes zero?
bool isZeros(const Tensor& tensor);
/// Is each slice along the first dimension equal to the first one?
bool hasEqualSlices(const Tensor& tensor);
/// Only zeros, ones and numbers that stand for minus infinity; or booleans.
bool isMask(const Tensor& tensor);
/// A mask that no parameter starts from: numbers that stand for minus infinity beside zeros or
/// ones, or zeros and ones in at least two dimensions.
bool isPattern(const Tensor& tensor);
/// Sines and cosines by position: zeros and ones at position 0, and pairs of columns, of one
/// distance in the row, whose squares sum to one at every position. Rows of zeros (padding) may be
/// among them.
bool isAngleTable(const Tensor& tensor);
/// The same of two tensors, the cosines of some angles and their sines.
bool areCosinesAndSines(const Tensor& a, const Tensor& b);
/// Are there three different elements, unlike in what was not drawn?
bool hasThreeValues(const Tensor& tensor);

} // namespace titan::frontend
