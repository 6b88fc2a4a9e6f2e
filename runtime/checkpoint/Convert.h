// Elements of one floating-point type as another's.
#pragma once

#include "runtime/device/Bytes.h"
#include "runtime/program/DType.h"

namespace titan::checkpoint {

/// Has `to` all values of `from`? Of floating-point types alone.
bool isExact(DType from, DType to);

/// `elements` of type `from` as elements of type `to`, rounded to nearest even. Both are
/// floating-point types, and `into` has room for all. BadInput: a finite value that `to` has not,
/// with the number of its element; `first` is that of the first one.
Status convertElements(DType from, std::span<const char> elements, DType to, std::span<char> into,
                       int64_t first = 0);

/// Takes elements of type `from`, and writes them to `sink` as elements of type `to`. Bytes may
/// come in any order and cut elements; each comes once. Both are floating-point types. One thread
/// at a time writes to it and to its copies.
ByteSink convertingSink(DType from, DType to, const ByteSink& sink);

} // namespace titan::checkpoint
