// How the values of one tensor come from those of another: what tells where a tensor comes from
// that an exporter computed, if the tensor that it was computed of is in the file too.
#pragma once

#include "frontend/onnx/read/Tensor.h"

namespace titan::frontend {

/// Drawn or trained values: not all are equal, and they are no mask.
bool isDrawn(const Tensor& tensor);

/// Equal for tensors of which one is the other with its dimensions moved: their type, their
/// extents, and some elements of the diagonal, which stay where they are. No others are read.
/// Nothing for data that is not there.
std::optional<std::string> movementKey(const Tensor& tensor);

/// Does `tensor` have all elements of `of`, where dimension i of `of` is dimension dims[i] of
/// `tensor`, whose others are 1?
bool isMovedBy(const Tensor& of, const Tensor& tensor, const std::vector<int64_t>& dims);

/// Does `tensor` have all elements of `of`, which are drawn, and only its dimensions are moved?
/// Then dimension i of `of` is dimension result[i] of `tensor`, whose others are 1.
std::optional<std::vector<int64_t>> movementOf(const Tensor& of, const Tensor& tensor);

/// Is `tensor` computed of `of`, which is drawn, element by element: its rows or others of its
/// elements, zeros among them (a mask), or the values of a function that rises or falls, such as
/// 1 + x? Large tensors are not compared: exporters compute only with small ones.
bool isComputedOf(const Tensor& of, const Tensor& tensor);

} // namespace titan::frontend
