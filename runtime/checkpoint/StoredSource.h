// A stored tensor as something to be saved again.
#pragma once

#include "runtime/checkpoint/StoredTensors.h"

namespace titan::checkpoint {

/// The tensor's elements, in type `as` where that is another floating-point type. When the first of
/// them is asked for, the whole tensor is read into memory, and the last one gives that back: bytes
/// are asked for in order. `tensor` and its files outlive the source.
ByteSource sourceOf(const StoredTensors::Tensor& tensor, DType as);

} // namespace titan::checkpoint
