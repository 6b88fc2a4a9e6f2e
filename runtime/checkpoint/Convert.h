// Elements of one floating-point type as another's.
#pragma once

#include "runtime/program/DType.h"

namespace titan::checkpoint {

/// Has `to` all values of `from`? Of floating-point types alone.
bool isExact(DType from, DType to);

/// `elements` of type `from` as elements of type `to`, rounded to nearest even. Both are
/// floating-point types, and `into` has room for all. BadInput: a finite value that `to` has not.
Status convertElements(DType from, std::span<const char> elements, DType to, std::span<char> into);

} // namespace titan::checkpoint
