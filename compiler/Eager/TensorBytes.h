// Values of the interpreter as the bytes of an arena or a checkpoint, and back.
#pragma once

#include "compiler/Interpreter/Tensor.h"
#include "runtime/program/DType.h"

namespace titan::eager {

/// Row-major elements of `dtype` as a tensor of `type`.
interpreter::Tensor decode(mlir::RankedTensorType type, DType dtype, const char* bytes);
/// Rounds to nearest even; `bytes` has room for all elements.
void encode(const interpreter::Tensor& tensor, DType dtype, char* bytes);

} // namespace titan::eager
