// Element types of state, inputs and buffers; the names are those of safetensors.
#pragma once

#include "runtime/program/Error.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace titan {

enum class DType : uint8_t { F64, F32, F16, BF16, I64, I32, I16, I8, U32, U16, U8, Bool };

/// Bytes of one element.
int64_t byteSize(DType dtype);
/// "F32", "BF16", "I64", "BOOL", ...
std::string_view name(DType dtype);
Result<DType> parseDType(std::string_view name);

using Shape = std::vector<int64_t>;
/// The product of the extents; 1 for a scalar.
int64_t elementCount(std::span<const int64_t> shape);
/// "[128, 784]"
std::string toString(std::span<const int64_t> shape);

/// Values round to nearest even, as IEEE conversion does.
uint16_t toBFloat16(float value);
float fromBFloat16(uint16_t bits);
float fromFloat16(uint16_t bits);
uint16_t toFloat16(float value);

} // namespace titan
