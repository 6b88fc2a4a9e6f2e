// Integer arithmetic: wraps as on the card, and no lane's value is undefined behaviour here.
#include "runtime/device/cuda/testing/ptx/Lanes.h"

namespace titan::ptx {
namespace {

template <typename T> using Unsigned = std::make_unsigned_t<T>;

/// Twice as wide as T, with its sign.
template <typename T>
using Wide = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

template <typename T> constexpr T plus(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <typename T> constexpr T minus(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
template <typename T> constexpr T low(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <typename T> constexpr T high(T a, T b) {
  return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b) >> (8 * sizeof(T)));
}
template <typename T> constexpr Wide<T> wide(T a, T b) {
  return static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b);
}

/// Division by zero is reported before this is asked for; the value only must not fault.
template <typename T> constexpr T quotient(T a, T b) {
  if (b == 0)
    return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == T{-1})
      return minus<T>(0, a);
  return static_cast<T>(a / b);
}
template <typename T> constexpr T remainder(T a, T b) {
  if (b == 0)
    return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == T{-1})
      return 0;
  return static_cast<T>(a % b);
}

/// What all sizes and both signs have.
template <typename T> void addCommon(OpcodeTable& table, const std::string& type) {
  constexpr Class integer = Class::Integer;
  add<+[](T a, T b) { return plus(a, b); }>(table, "add." + type, integer);
  add<+[](T a, T b) { return minus(a, b); }>(table, "sub." + type, integer);
  add<+[](T a, T b) { return low(a, b); }>(table, "mul.lo." + type, integer);
  add<+[](T a, T b) { return high(a, b); }>(table, "mul.hi." + type, integer);
  add<+[](T a, T b, T c) { return plus(low(a, b), c); }>(table, "mad.lo." + type, integer);
  add<+[](T a, T b, T c) { return plus(high(a, b), c); }>(table, "mad.hi." + type, integer);
  add<+[](T a, T b) { return a < b ? a : b; }>(table, "min." + type, integer);
  add<+[](T a, T b) { return a > b ? a : b; }>(table, "max." + type, integer);
  add<+[](T a, T b) { return quotient(a, b); }>(table, "div." + type, integer, Kind::Divide);
  add<+[](T a, T b) { return remainder(a, b); }>(table, "rem." + type, integer, Kind::Divide);
  if constexpr (sizeof(T) < 8) {
    add<+[](T a, T b) { return wide(a, b); }>(table, "mul.wide." + type, integer);
    add<+[](T a, T b, Wide<T> c) { return plus(wide(a, b), c); }>(table, "mad.wide." + type,
                                                                  integer);
  }
  if constexpr (std::is_signed_v<T>) {
    add<+[](T a) { return minus<T>(0, a); }>(table, "neg." + type, integer);
    add<+[](T a) { return a < 0 ? minus<T>(0, a) : a; }>(table, "abs." + type, integer);
  }
}

} // namespace

void addInteger(OpcodeTable& table) {
  addCommon<int16_t>(table, "s16");
  addCommon<uint16_t>(table, "u16");
  addCommon<int32_t>(table, "s32");
  addCommon<uint32_t>(table, "u32");
  addCommon<int64_t>(table, "s64");
  addCommon<uint64_t>(table, "u64");
}

} // namespace titan::ptx
