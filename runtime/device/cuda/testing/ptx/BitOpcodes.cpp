// Shifts, logic and fields of bits. Amounts at or beyond the width clamp, as PTX says.
#include "runtime/device/cuda/testing/ptx/Lanes.h"

#include <algorithm>
#include <bit>

namespace titan::ptx {
namespace {

template <typename T> constexpr uint32_t bitsOf = 8 * sizeof(T);

template <typename T> constexpr T shiftLeft(T a, uint32_t by) {
  return by >= bitsOf<T> ? T{0} : static_cast<T>(uint64_t{a} << by);
}
template <typename T> constexpr T shiftRight(T a, uint32_t by) {
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(a >> std::min(by, bitsOf<T> - 1));
  else
    return by >= bitsOf<T> ? T{0} : static_cast<T>(a >> by);
}

/// The `count` low bits set.
template <typename T> constexpr T lowBits(uint32_t count) {
  return count >= bitsOf<T> ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << count) - 1);
}

template <typename T> constexpr T extractUnsigned(T a, uint32_t position, uint32_t length) {
  return shiftRight(a, position & 0xff) & lowBits<T>(length & 0xff);
}

/// Beyond the field's end, or the word's, stands the field's last bit.
template <typename T> constexpr T extractSigned(T a, uint32_t position, uint32_t length) {
  position &= 0xff;
  length &= 0xff;
  if (length == 0)
    return 0;
  bool sign = a >> std::min(position + length - 1, bitsOf<T> - 1) & 1;
  uint32_t valid = position >= bitsOf<T> ? 0 : std::min(length, bitsOf<T> - position);
  T field = shiftRight(a, position) & lowBits<T>(valid);
  return sign ? field | static_cast<T>(~lowBits<T>(valid)) : field;
}

template <typename T> constexpr T insert(T a, T into, uint32_t position, uint32_t length) {
  T field = shiftLeft(lowBits<T>(length & 0xff), position & 0xff);
  return (into & ~field) | (shiftLeft(a, position & 0xff) & field);
}

template <typename T> constexpr T reverse(T a) {
  T result = 0;
  for (uint32_t i = 0; i < bitsOf<T>; ++i)
    result |= (a >> i & T{1}) << (bitsOf<T> - 1 - i);
  return result;
}

/// The highest bit that differs from the sign, or all ones.
template <typename T> constexpr uint32_t findHighest(T a) {
  using U = std::make_unsigned_t<T>;
  U bits = static_cast<U>(a < 0 ? ~a : a);
  return bits == 0 ? ~0u : bitsOf<T> - 1 - std::countl_zero(bits);
}

constexpr uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    uint32_t choice = selector >> (4 * i) & 0xf;
    uint32_t byte = bytes >> (8 * (choice & 7)) & 0xff;
    if (choice & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

constexpr uint32_t funnelLeft(uint32_t low, uint32_t high, uint32_t by) {
  return by == 0 ? high : by >= 32 ? low : high << by | low >> (32 - by);
}
constexpr uint32_t funnelRight(uint32_t low, uint32_t high, uint32_t by) {
  return by == 0 ? low : by >= 32 ? high : high << (32 - by) | low >> by;
}

constexpr uint32_t lookUp(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (int i = 0; i < 8; ++i)
    if (table >> i & 1)
      result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return result;
}

/// b16, b32 and b64.
template <typename T> void addLogic(OpcodeTable& table, const std::string& size) {
  using S = std::make_signed_t<T>;
  constexpr Class integer = Class::Integer;
  add<+[](T a, T b) { return static_cast<T>(a & b); }>(table, "and.b" + size, integer);
  add<+[](T a, T b) { return static_cast<T>(a | b); }>(table, "or.b" + size, integer);
  add<+[](T a, T b) { return static_cast<T>(a ^ b); }>(table, "xor.b" + size, integer);
  add<+[](T a) { return static_cast<T>(~a); }>(table, "not.b" + size, integer);
  add<+[](T a, uint32_t by) { return shiftLeft(a, by); }>(table, "shl.b" + size, integer);
  for (const char* type : {"shr.u", "shr.b"})
    add<+[](T a, uint32_t by) { return shiftRight(a, by); }>(table, type + size, integer);
  add<+[](S a, uint32_t by) { return shiftRight(a, by); }>(table, "shr.s" + size, integer);
}

/// b32 and b64.
template <typename T> void addFields(OpcodeTable& table, const std::string& size) {
  using S = std::make_signed_t<T>;
  constexpr Class integer = Class::Integer;
  add<+[](T a) { return static_cast<uint32_t>(std::popcount(a)); }>(table, "popc.b" + size,
                                                                    integer);
  add<+[](T a) { return static_cast<uint32_t>(std::countl_zero(a)); }>(table, "clz.b" + size,
                                                                       integer);
  add<+[](T a) { return reverse(a); }>(table, "brev.b" + size, integer);
  add<+[](T a, uint32_t p, uint32_t n) { return extractUnsigned(a, p, n); }>(table, "bfe.u" + size,
                                                                             integer);
  add<+[](T a, uint32_t p, uint32_t n) { return extractSigned(a, p, n); }>(table, "bfe.s" + size,
                                                                           integer);
  add<+[](T a, T b, uint32_t p, uint32_t n) { return insert(a, b, p, n); }>(table, "bfi.b" + size,
                                                                            integer);
  add<+[](T a) { return findHighest(a); }>(table, "bfind.u" + size, integer);
  add<+[](S a) { return findHighest(a); }>(table, "bfind.s" + size, integer);
  add<+[](T a) {
    uint32_t at = findHighest(a);
    return at == ~0u ? at : bitsOf<T> - 1 - at;
  }>(table, "bfind.shiftamt.u" + size, integer);
}

} // namespace

void addBits(OpcodeTable& table) {
  addLogic<uint16_t>(table, "16");
  addLogic<uint32_t>(table, "32");
  addLogic<uint64_t>(table, "64");
  addFields<uint32_t>(table, "32");
  addFields<uint64_t>(table, "64");
  constexpr Class integer = Class::Integer;
  add<+[](uint32_t a, uint32_t b, uint32_t c) { return permute(a, b, c); }>(table, "prmt.b32",
                                                                            integer);
  add<+[](uint32_t a, uint32_t b, uint32_t c, uint32_t t) { return lookUp(a, b, c, t); }>(
      table, "lop3.b32", integer);
  using U = uint32_t;
  add<+[](U a, U b, U c) { return funnelLeft(a, b, c & 31); }>(table, "shf.l.wrap.b32", integer);
  add<+[](U a, U b, U c) { return funnelRight(a, b, c & 31); }>(table, "shf.r.wrap.b32", integer);
  add<+[](U a, U b, U c) { return funnelLeft(a, b, c); }>(table, "shf.l.clamp.b32", integer);
  add<+[](U a, U b, U c) { return funnelRight(a, b, c); }>(table, "shf.r.clamp.b32", integer);

  constexpr Class predicate = Class::Predicate;
  add<+[](bool a, bool b) { return a && b; }>(table, "and.pred", predicate);
  add<+[](bool a, bool b) { return a || b; }>(table, "or.pred", predicate);
  add<+[](bool a, bool b) { return a != b; }>(table, "xor.pred", predicate);
  add<+[](bool a) { return !a; }>(table, "not.pred", predicate);
}

} // namespace titan::ptx
