// Arithmetic of bf16, alone and in pairs: LLVM makes it of what is computed in f32 and rounded,
// where the bits are the same. A NaN that comes out is 0x7fff.
#include "runtime/device/cuda/testing/ptx/Bfloat.h"
#include "runtime/device/cuda/testing/ptx/Lanes.h"

#include <cmath>

namespace titan::ptx {
namespace {

/// `rounded` is near an exact value that lies `rest` above it: of its two neighbours the one whose
/// last bit is set. Such a value may be rounded once more, to less than half as many bits, as if it
/// were the exact one.
template <typename T> T toOdd(T rounded, double rest) {
  Bits<T> bits = bitsOf(rounded);
  if (rest == 0 || (bits & 1) || rounded != rounded)
    return rounded;
  const bool isAbove = (rest > 0) != std::signbit(rounded); // in magnitude
  return std::bit_cast<T>(isAbove ? bits | 1 : bits - 1);
}

/// Rounded once. The product of two bf16 is exact in f64.
uint16_t fused(uint16_t a, uint16_t b, uint16_t c) {
  const double product = double{widened(a)} * double{widened(b)}, addend = widened(c);
  const double sum = product + addend;
  if (!std::isfinite(sum))
    return bfloatNearest(static_cast<float>(sum));
  // What the sum lost (Knuth's two-sum).
  const double second = sum - product;
  const double lost = (product - (sum - second)) + (addend - second);
  const double odd = toOdd(sum, lost);
  const auto narrow = static_cast<float>(odd);
  return bfloatNearest(toOdd(narrow, odd - double{narrow}));
}

constexpr uint16_t signBit = 0x8000;

bool isNan(uint16_t x) { return (x & ~signBit) > 0x7f80; }
/// -0 lies below +0.
bool isBelow(uint16_t a, uint16_t b) {
  return widened(a) < widened(b) || (widened(a) == widened(b) && (a & signBit) > (b & signBit));
}
uint16_t lesser(uint16_t a, uint16_t b) { return isBelow(a, b) ? a : b; }
uint16_t greater(uint16_t a, uint16_t b) { return isBelow(a, b) ? b : a; }

/// The other one where one is NaN.
template <auto choose> uint16_t ofNumbers(uint16_t a, uint16_t b) {
  if (isNan(a) || isNan(b))
    return isNan(a) && isNan(b) ? 0x7fff : isNan(a) ? b : a;
  return choose(a, b);
}
template <auto choose> uint16_t orNan(uint16_t a, uint16_t b) {
  return isNan(a) || isNan(b) ? 0x7fff : choose(a, b);
}
uint16_t negated(uint16_t x) { return x ^ signBit; }
uint16_t absolute(uint16_t x) { return x & ~signBit; }

/// A function of each half.
template <auto function, typename... S> uint32_t inPairs(S... words) {
  const uint32_t low = function(static_cast<uint16_t>(words)...),
                 high = function(static_cast<uint16_t>(words >> 16)...);
  return high << 16 | low;
}

template <typename S> using Word = uint32_t;

template <auto function, typename... S>
void addBoth(OpcodeTable& table, const std::string& name, uint16_t (*)(S...)) {
  add<function>(table, name + ".bf16", Class::Float32);
  add<&inPairs<function, Word<S>...>>(table, name + ".bf16x2", Class::Float32);
}
template <auto function> void addBoth(OpcodeTable& table, const std::string& name) {
  addBoth<function>(table, name, function);
}

} // namespace

void addBfloat(OpcodeTable& table) {
  addBoth<&fused>(table, "fma.rn");
  addBoth<&ofNumbers<&lesser>>(table, "min");
  addBoth<&ofNumbers<&greater>>(table, "max");
  addBoth<&orNan<&lesser>>(table, "min.NaN");
  addBoth<&orNan<&greater>>(table, "max.NaN");
  addBoth<&negated>(table, "neg");
  addBoth<&absolute>(table, "abs");
}

} // namespace titan::ptx
