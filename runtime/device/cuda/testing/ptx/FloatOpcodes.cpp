// Arithmetic of f32 and f64, to the bit of a card: round to nearest, subnormals kept.
//
// A NaN that an f32 instruction makes is 0x7fffffff, whatever NaN went in. Of f64 PTX promises no
// payload; the host's stands. neg, abs and copysign move the sign bit alone.
#include "runtime/device/cuda/testing/ptx/Lanes.h"

#include <bit>
#include <cmath>

namespace titan::ptx {
namespace {

constexpr float nan32 = std::bit_cast<float>(0x7fffffffu);

inline float canonical(float x) { return x != x ? nan32 : x; }
inline double canonical(double x) { return x; }

template <typename T> using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
template <typename T> constexpr Bits<T> signBit = Bits<T>{1} << (8 * sizeof(T) - 1);

template <typename T> Bits<T> bitsOf(T x) { return std::bit_cast<Bits<T>>(x); }
template <typename T> T valueOf(Bits<T> x) { return std::bit_cast<T>(x); }

/// -0 lies below +0. The other operand where one is NaN.
template <typename T> T lesser(T a, T b) {
  T equal = valueOf<T>(bitsOf(a) | bitsOf(b));
  T number = a < b ? a : b < a ? b : equal;
  return a != a ? canonical(b) : b != b ? a : number;
}
template <typename T> T greater(T a, T b) {
  T equal = valueOf<T>(bitsOf(a) & bitsOf(b));
  T number = a > b ? a : b > a ? b : equal;
  return a != a ? canonical(b) : b != b ? a : number;
}

template <typename T> T orNan(T a, T b, T result) {
  if constexpr (sizeof(T) == 4)
    return a != a || b != b ? nan32 : result;
  else
    return a != a ? a : b != b ? b : result;
}

#if defined(__x86_64__)
/// Without these instructions a library call each lane would do it, ten times slower.
template <typename T>
__attribute__((target("avx2,fma"))) void fusedWide(char* file, const uint32_t* at, Mask mask) {
  alignas(64) T result[warpSize];
  const T *a = column<T>(file, at[1]), *b = column<T>(file, at[2]), *c = column<T>(file, at[3]);
  for (int lane = 0; lane < warpSize; ++lane) {
    T sum = sizeof(T) == 4 ? __builtin_fmaf(a[lane], b[lane], c[lane])
                           : __builtin_fma(a[lane], b[lane], c[lane]);
    result[lane] = canonical(sum);
  }
  keep(file, at[0], result, mask);
}
#endif

template <typename T> void addFused(OpcodeTable& table, const std::string& name, Class counter) {
  add<+[](T a, T b, T c) { return canonical(std::fma(a, b, c)); }>(table, name, counter);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    table.at(name).lanes = &fusedWide<T>;
#endif
}

template <typename T> void addTests(OpcodeTable& table, const std::string& type, Class counter) {
  add<+[](T a) { return std::isfinite(a); }>(table, "testp.finite." + type, counter);
  add<+[](T a) { return std::isinf(a); }>(table, "testp.infinite." + type, counter);
  add<+[](T a) { return a == a; }>(table, "testp.number." + type, counter);
  add<+[](T a) { return a != a; }>(table, "testp.notanumber." + type, counter);
  add<+[](T a) { return std::isnormal(a); }>(table, "testp.normal." + type, counter);
  add<+[](T a) { return std::fpclassify(a) == FP_SUBNORMAL; }>(table, "testp.subnormal." + type,
                                                               counter);
}

template <typename T> void addType(OpcodeTable& table, const std::string& type, Class counter) {
  add<+[](T a, T b) { return canonical(a + b); }>(table, "add.rn." + type, counter);
  add<+[](T a, T b) { return canonical(a - b); }>(table, "sub.rn." + type, counter);
  add<+[](T a, T b) { return canonical(a * b); }>(table, "mul.rn." + type, counter);
  add<+[](T a, T b) { return canonical(a / b); }>(table, "div.rn." + type, counter);
  add<+[](T a) { return canonical(std::sqrt(a)); }>(table, "sqrt.rn." + type, counter);
  add<+[](T a) { return canonical(T{1} / a); }>(table, "rcp.rn." + type, counter);
  addFused<T>(table, "fma.rn." + type, counter);
  add<+[](T a, T b) { return lesser(a, b); }>(table, "min." + type, counter);
  add<+[](T a, T b) { return greater(a, b); }>(table, "max." + type, counter);
  add<+[](T a) { return valueOf<T>(bitsOf(a) ^ signBit<T>); }>(table, "neg." + type, counter);
  add<+[](T a) { return valueOf<T>(bitsOf(a) & ~signBit<T>); }>(table, "abs." + type, counter);
  // The sign of the first operand, the magnitude of the second.
  add<+[](T a, T b) { return valueOf<T>((bitsOf(a) & signBit<T>) | (bitsOf(b) & ~signBit<T>)); }>(
      table, "copysign." + type, counter);
  addTests<T>(table, type, counter);
}

} // namespace

void addFloat(OpcodeTable& table) {
  addType<float>(table, "f32", Class::Float32);
  addType<double>(table, "f64", Class::Float64);
  add<+[](float a, float b) { return orNan(a, b, lesser(a, b)); }>(table, "min.NaN.f32",
                                                                   Class::Float32);
  add<+[](float a, float b) { return orNan(a, b, greater(a, b)); }>(table, "max.NaN.f32",
                                                                    Class::Float32);
}

} // namespace titan::ptx
