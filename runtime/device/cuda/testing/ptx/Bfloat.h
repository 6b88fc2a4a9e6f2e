// Numbers of bf16: the upper halves of those of f32.
#pragma once

#include "runtime/device/cuda/testing/ptx/Nan.h"

namespace titan::ptx {

inline float widened(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

/// The upper half of `rounded`; 0x7fff for a NaN.
inline uint16_t bfloatOf(float value, uint32_t rounded) {
  auto nan = static_cast<uint16_t>(nanMask<float>(bitsOf(value)));
  return static_cast<uint16_t>((rounded >> 16 | nan) & ~(nan & 0x8000));
}
inline uint16_t bfloatNearest(float value) {
  uint32_t bits = bitsOf(value);
  return bfloatOf(value, bits + 0x7fff + (bits >> 16 & 1));
}
inline uint16_t bfloatToZero(float value) { return bfloatOf(value, bitsOf(value)); }

} // namespace titan::ptx
