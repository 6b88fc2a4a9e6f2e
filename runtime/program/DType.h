// Element types of state, inputs and buffers; the names are those of safetensors.
#pragma once

#include "runtime/program/Error.h"

#include <bit>
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

/// Values round to nearest even, as IEEE conversion does. Those of bf16 are here so that loops over
/// them are vectorised.
inline uint16_t toBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  // A NaN stays one, whatever its low bits.
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const bool isNaN = (bits & 0x7fffffff) > 0x7f800000;
  return static_cast<uint16_t>(isNaN ? bits >> 16 | 0x40 : rounded);
}
inline float fromBFloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
float fromFloat16(uint16_t bits);
uint16_t toFloat16(float value);

} // namespace titan
