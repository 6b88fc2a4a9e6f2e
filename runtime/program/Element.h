// Elements of any type as numbers, where a test or a comparison looks at them one by one.
#pragma once

#include "runtime/program/DType.h"

namespace titan {

/// F64, F32, F16 or BF16.
bool isFloat(DType dtype);

/// The element at `address`, which need not be aligned. Integers beyond 2^53 are rounded; a Bool is
/// its byte.
double readElement(DType dtype, const char* address);

} // namespace titan
