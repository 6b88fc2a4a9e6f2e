// What is known at compile time about an index expression along the lanes.
#pragma once

#include "compiler/Codegen/kernel/LoopNest.h"

namespace titan::codegen {

/// How much `value` (of type index) grows from one lane to the next along `dim`, where it is a sum
/// of coordinates times constants.
std::optional<int64_t> coefficientAlong(const LoopNest& nest, mlir::Value value, unsigned dim);
/// Whether `value` is known to be a multiple of 8 on the first lane along `dim`; lanes start at
/// multiples of their length, which is one of 8.
bool isMultipleOf8(const LoopNest& nest, mlir::Value value, unsigned dim);

} // namespace titan::codegen
