// The words of titan.exact_sum: an integer in units of 2^-149 (the smallest f32 above 0), and a
// count.
#pragma once

#include <cstdint>

namespace titan::ir::exact {

/// Digits of an f32, to the base 2^digitBits.
inline constexpr int64_t digits = 9, digitBits = 32;
/// Word number `digits` counts what is not finite.
inline constexpr int64_t words = digits + 1;
/// The unit is 2^unit; a number of 2^limit or more is not finite.
inline constexpr int unit = -149, limit = 128;
/// So many elements at most: each adds less than 2^digitBits to a word.
inline constexpr int64_t mostElements = int64_t(1) << 31;

} // namespace titan::ir::exact
