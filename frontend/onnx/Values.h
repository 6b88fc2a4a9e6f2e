// What the values of a tensor tell where names do not. All answer no for data that is not there.
#pragma once

#include "frontend/onnx/Tensor.h"

namespace titan::frontend {

/// Are all elements equal, as in what norms and biases start from?
bool isUniform(const Tensor& tensor);
/// Is each slice along the first dimension equal to the first one?
bool hasEqualSlices(const Tensor& tensor);
/// Only zeros, ones and numbers that stand for minus infinity; or booleans.
bool isMask(const Tensor& tensor);
/// Cosines and sines by position: position 0 has zeros and ones only, the others have not.
bool isAngleTable(const Tensor& tensor);
/// Matrices of drawn or trained values: is `b` equal to `a`, or to its transposition?
bool areEqualValues(const Tensor& a, const Tensor& b, bool transposed);

} // namespace titan::frontend
