// Arithmetic of f32 and f64, to the bit of a card: round to nearest, subnormals kept.
//
// A NaN that an f32 instruction makes is 0x7fffffff, whatever NaN went in. neg, abs and copysign
// move the sign bit alone.
#include "runtime/device/cuda/testing/ptx/Lanes.h"
#include "runtime/device/cuda/testing/ptx/Nan.h"

#include <cmath>

namespace titan::ptx {
namespace {

template <typename T> constexpr Bits<T> signBit = Bits<T>{1} << (8 * sizeof(T) - 1);

/// b where a is NaN, a where b is, else `number`.
template <typename T> Bits<T> notNan(T a, T b, Bits<T> number) {
  Bits<T> aNan = nanMask<T>(bitsOf(a)), bNan = nanMask<T>(bitsOf(b));
  return (aNan & canonical(b)) | (~aNan & bNan & bitsOf(a)) | (~aNan & ~bNan & number);
}

/// -0 lies below +0.
template <typename T> Bits<T> lesser(T a, T b) {
  return a < b ? bitsOf(a) : b < a ? bitsOf(b) : bitsOf(a) | bitsOf(b);
}
template <typename T> Bits<T> greater(T a, T b) {
  return a > b ? bitsOf(a) : b > a ? bitsOf(b) : bitsOf(a) & bitsOf(b);
}

uint32_t orNan(float a, float b, uint32_t result) {
  uint32_t nan = nanMask<float>(bitsOf(a)) | nanMask<float>(bitsOf(b));
  return (result | nan) & ~(nan << 31);
}

#if defined(__x86_64__)
/// Without these instructions a library call each lane would do it, ten times slower.
template <typename T>
__attribute__((target("avx2,fma"))) void fusedWide(char* file, const uint32_t* at, Mask mask) {
  alignas(64) Bits<T> result[warpSize];
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
  add<+[](T a, T b) { return notNan(a, b, lesser(a, b)); }>(table, "min." + type, counter);
  add<+[](T a, T b) { return notNan(a, b, greater(a, b)); }>(table, "max." + type, counter);
  add<+[](T a) { return bitsOf(a) ^ signBit<T>; }>(table, "neg." + type, counter);
  add<+[](T a) { return bitsOf(a) & ~signBit<T>; }>(table, "abs." + type, counter);
  // The sign of the first operand, the magnitude of the second.
  add<+[](T a, T b) { return (bitsOf(a) & signBit<T>) | (bitsOf(b) & ~signBit<T>); }>(
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
