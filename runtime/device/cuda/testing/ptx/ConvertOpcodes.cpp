// cvt between all types that generated code uses, and cvta.
//
// A register may be wider than the type that is read from it or written to it: the low bytes are
// read; what is written is extended by the sign of the result's type.
#include "runtime/device/cuda/testing/ptx/Bfloat.h"
#include "runtime/device/cuda/testing/ptx/Lanes.h"
#include "runtime/device/cuda/testing/ptx/Nan.h"

#include <cmath>
#include <limits>
#include <utility>

namespace titan::ptx {
namespace {

/// bf16 is its own type here, so that a conversion knows it from u16.
enum class Bfloat : uint16_t {};

template <typename T> constexpr const char* nameOf = "";
template <> constexpr const char* nameOf<int8_t> = "s8";
template <> constexpr const char* nameOf<uint8_t> = "u8";
template <> constexpr const char* nameOf<int16_t> = "s16";
template <> constexpr const char* nameOf<uint16_t> = "u16";
template <> constexpr const char* nameOf<int32_t> = "s32";
template <> constexpr const char* nameOf<uint32_t> = "u32";
template <> constexpr const char* nameOf<int64_t> = "s64";
template <> constexpr const char* nameOf<uint64_t> = "u64";
template <> constexpr const char* nameOf<float> = "f32";
template <> constexpr const char* nameOf<double> = "f64";
template <> constexpr const char* nameOf<Bfloat> = "bf16";

/// Those of registers of `bytes`; of a wider one the low bytes.
template <typename S> [[gnu::noinline]] void load(const char* from, uint32_t bytes, S* source) {
  if (bytes == sizeof(S))
    std::memcpy(source, from, sizeof(S) * warpSize);
  else
    for (int lane = 0; lane < warpSize; ++lane)
      std::memcpy(source + lane, from + lane * bytes, sizeof(S));
}

/// To registers of `bytes`; to a wider one extended by the sign of R.
template <typename R>
[[gnu::noinline]] void store(char* file, uint32_t at, uint32_t bytes, const R* result, Mask mask) {
  if (bytes == sizeof(R)) {
    keep(file, at, result, mask);
    return;
  }
  if constexpr (std::is_integral_v<R>)
    for (int lane = 0; lane < warpSize; ++lane)
      if (mask >> lane & 1) {
        auto extended = static_cast<uint64_t>(static_cast<int64_t>(result[lane]));
        if constexpr (std::is_unsigned_v<R>)
          extended = result[lane];
        std::memcpy(file + at + lane * bytes, &extended, bytes);
      }
}

/// `at` is: result, source, bytes of the result's register, bytes of the source's register.
template <auto function> struct Conversion;
template <typename R, typename S, R (*function)(S)> struct Conversion<function> {
  static void run(char* file, const uint32_t* at, Mask mask) {
    alignas(64) S source[warpSize];
    alignas(64) R result[warpSize];
    load(file + at[1], at[3], source);
    for (int lane = 0; lane < warpSize; ++lane)
      result[lane] = function(source[lane]);
    store(file, at[0], at[2], result, mask);
  }

  /// `To` names the result's type where R are its bits.
  template <typename To = R> static void addTo(OpcodeTable& table, const std::string& rounding) {
    std::string name = "cvt." + rounding + nameOf<To> + "." + nameOf<S>;
    table.insert_or_assign(name, Opcode{.counter = Class::Conversion,
                                        .lanes = &run,
                                        .results = 1,
                                        .sources = 1,
                                        .widths = {widthOf<R>(), widthOf<S>()},
                                        .widens = true});
  }
};

template <typename D, typename S> D saturate(S value) {
  if (std::cmp_less(value, std::numeric_limits<D>::min()))
    return std::numeric_limits<D>::min();
  if (std::cmp_greater(value, std::numeric_limits<D>::max()))
    return std::numeric_limits<D>::max();
  return static_cast<D>(value);
}

/// Clamped to the result's range. A NaN is 0, but with 64 bits on either side only the highest bit.
template <typename D, typename S> D toInteger(S value) {
  if (value != value)
    return sizeof(S) < 8 && sizeof(D) < 8 ? D{0}
                                          : static_cast<D>(uint64_t{1} << (8 * sizeof(D) - 1));
  // The first value above the range is a power of two, and exact in S.
  S above = std::ldexp(S{1}, std::numeric_limits<D>::digits);
  if (value >= above)
    return std::numeric_limits<D>::max();
  if (value <= static_cast<S>(std::numeric_limits<D>::min()))
    return std::numeric_limits<D>::min();
  return static_cast<D>(value);
}

template <typename D, typename S> void addIntegers(OpcodeTable& table) {
  Conversion<+[](S x) { return static_cast<D>(x); }>::addTo(table, "");
  // Where all values fit, an assembler has no such instruction.
  constexpr bool allFit =
      std::cmp_less_equal(std::numeric_limits<D>::min(), std::numeric_limits<S>::min()) &&
      std::cmp_greater_equal(std::numeric_limits<D>::max(), std::numeric_limits<S>::max());
  if constexpr (!allFit)
    Conversion<+[](S x) { return saturate<D>(x); }>::addTo(table, "sat.");
}

template <typename I, typename F> void addBetween(OpcodeTable& table) {
  Conversion<+[](I x) { return static_cast<F>(x); }>::addTo(table, "rn.");
  Conversion<+[](F x) { return toInteger<I>(std::nearbyint(x)); }>::addTo(table, "rni.");
  Conversion<+[](F x) { return toInteger<I>(x); }>::addTo(table, "rzi.");
  Conversion<+[](F x) { return toInteger<I>(std::floor(x)); }>::addTo(table, "rmi.");
  Conversion<+[](F x) { return toInteger<I>(std::ceil(x)); }>::addTo(table, "rpi.");
}

template <typename I> void addInteger(OpcodeTable& table) {
  addIntegers<I, int8_t>(table);
  addIntegers<I, uint8_t>(table);
  addIntegers<I, int16_t>(table);
  addIntegers<I, uint16_t>(table);
  addIntegers<I, int32_t>(table);
  addIntegers<I, uint32_t>(table);
  addIntegers<I, int64_t>(table);
  addIntegers<I, uint64_t>(table);
  addBetween<I, float>(table);
  addBetween<I, double>(table);
}

template <typename F> void addWhole(OpcodeTable& table) {
  Conversion<+[](F x) { return canonical(std::nearbyint(x)); }>::template addTo<F>(table, "rni.");
  Conversion<+[](F x) { return canonical(std::trunc(x)); }>::template addTo<F>(table, "rzi.");
  Conversion<+[](F x) { return canonical(std::floor(x)); }>::template addTo<F>(table, "rmi.");
  Conversion<+[](F x) { return canonical(std::ceil(x)); }>::template addTo<F>(table, "rpi.");
  // To [0, 1]; a NaN is 0.
  Conversion<+[](F x) { return x > 0 ? x < 1 ? x : F{1} : F{0}; }>::addTo(table, "sat.");
}

} // namespace

void addConvert(OpcodeTable& table) {
  addInteger<int8_t>(table);
  addInteger<uint8_t>(table);
  addInteger<int16_t>(table);
  addInteger<uint16_t>(table);
  addInteger<int32_t>(table);
  addInteger<uint32_t>(table);
  addInteger<int64_t>(table);
  addInteger<uint64_t>(table);
  addWhole<float>(table);
  addWhole<double>(table);
  Conversion<+[](double x) { return canonical(static_cast<float>(x)); }>::addTo<float>(table,
                                                                                       "rn.");
  Conversion<+[](float x) { return static_cast<double>(x); }>::addTo(table, "");
  Conversion<+[](Bfloat x) { return widened(static_cast<uint16_t>(x)); }>::addTo(table, "");
  Conversion<+[](float x) { return static_cast<Bfloat>(bfloatNearest(x)); }>::addTo(table, "rn.");
  Conversion<+[](float x) { return static_cast<Bfloat>(bfloatToZero(x)); }>::addTo(table, "rz.");

  constexpr Class conversion = Class::Conversion;
  // The first operand is the upper half.
  add<+[](float a, float b) { return uint32_t{bfloatNearest(a)} << 16 | bfloatNearest(b); }>(
      table, "cvt.rn.bf16x2.f32", conversion);
  add<+[](float a, float b) { return uint32_t{bfloatToZero(a)} << 16 | bfloatToZero(b); }>(
      table, "cvt.rz.bf16x2.f32", conversion);

  for (const char* name : {"cvta.global.u64", "cvta.to.global.u64"})
    add<+[](uint64_t x) { return x; }>(table, name, conversion);
  add<+[](uint64_t x) { return x + sharedGenericBase; }>(table, "cvta.shared.u64", conversion);
  add<+[](uint64_t x) { return x - sharedGenericBase; }>(table, "cvta.to.shared.u64", conversion);
}

} // namespace titan::ptx
