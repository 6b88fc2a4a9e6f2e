// NaNs as instructions make them.
//
// Bits and integers, not floats: to the compiler all NaNs are one value, so it takes
// `x != x ? nan : x` for x, and the bits that a processor left stay.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace titan::ptx {

template <typename T> using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <typename T> Bits<T> bitsOf(T x) { return std::bit_cast<Bits<T>>(x); }

/// All ones where x is NaN, else 0.
template <typename T> Bits<T> nanMask(Bits<T> x) {
  constexpr auto infinity =
      static_cast<Bits<T>>(sizeof(T) == 4 ? 0x7f800000 : uint64_t{0x7ff0000000000000});
  return (x << 1) > (infinity << 1) ? ~Bits<T>{0} : 0;
}

/// The bits of x; a NaN of f32 is 0x7fffffff. Of f64 PTX promises no payload: the host's stands.
inline uint32_t canonical(float x) {
  uint32_t nan = nanMask<float>(bitsOf(x));
  return (bitsOf(x) | nan) & ~(nan << 31);
}
inline uint64_t canonical(double x) { return bitsOf(x); }

} // namespace titan::ptx
