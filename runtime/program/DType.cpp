#include "runtime/program/DType.h"

#include <array>
#include <bit>

namespace titan {

namespace {

struct Description {
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<Description, 12> descriptions = {{{"F64", 8},
                                                       {"F32", 4},
                                                       {"F16", 2},
                                                       {"BF16", 2},
                                                       {"I64", 8},
                                                       {"I32", 4},
                                                       {"I16", 2},
                                                       {"I8", 1},
                                                       {"U32", 4},
                                                       {"U16", 2},
                                                       {"U8", 1},
                                                       {"BOOL", 1}}};

/// `value` >> `shift`, rounded to nearest, ties to even; 0 < shift < 32.
uint32_t shiftRounded(uint32_t value, int shift) {
  const uint32_t half = uint32_t{1} << (shift - 1);
  const uint32_t kept = value >> shift;
  const uint32_t lost = value & ((uint32_t{1} << shift) - 1);
  return kept + (lost > half || (lost == half && (kept & 1)));
}

} // namespace

int64_t byteSize(DType dtype) { return descriptions[static_cast<size_t>(dtype)].bytes; }

std::string_view name(DType dtype) { return descriptions[static_cast<size_t>(dtype)].name; }

Result<DType> parseDType(std::string_view name) {
  for (size_t i = 0; i < descriptions.size(); ++i)
    if (descriptions[i].name == name)
      return static_cast<DType>(i);
  return Error::badInput("unknown dtype '{}'", name);
}

int64_t elementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

std::string toString(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

float fromFloat16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = bits >> 10 & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f)
    return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0) // zero or subnormal: mantissa * 2^-24, exact in f32
    return (sign ? -1.0f : 1.0f) * static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t toFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return sign | 0x7e00;
  if (magnitude >= 0x47800000) // 2^16 and above
    return sign | 0x7c00;
  if (magnitude >= 0x38800000) // normal in f16; rounding may carry into the exponent, up to
                               // infinity, as it should
    return static_cast<uint16_t>(sign | shiftRounded(magnitude - (uint32_t{112} << 23), 13));
  const int shift = 126 - static_cast<int>(magnitude >> 23);
  if (shift > 25) // below half of the smallest subnormal
    return sign;
  return static_cast<uint16_t>(sign | shiftRounded((magnitude & 0x7fffff) | 0x800000, shift));
}

} // namespace titan
