// What the values of a tensor tell where names do not. All answer no for data that is not there.
#pragma once

#include "frontend/onnx/read/Tensor.h"

namespace titan::frontend {

/// The tensor of `shape` of its first elements, as the first rows of a table.
Tensor firstOf(const Tensor& tensor, Shape shape);

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
/// Are there three different elements, unlike in what was not drawn?
bool hasThreeValues(const Tensor& tensor);

} // namespace titan::frontend
