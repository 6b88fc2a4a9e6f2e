// setp, set, selp and slct.
#include "runtime/device/cuda/testing/ptx/Lanes.h"

namespace titan::ptx {
namespace {

enum class Combine { None, And, Or, Xor };

/// p = a ? b, q = its opposite; each then combined with a third predicate.
template <auto compare, typename T, Combine combine>
void setPredicate(char* file, const uint32_t* at, Mask mask) {
  const T *a = column<T>(file, at[2]), *b = column<T>(file, at[3]);
  Mask bits = 0;
  for (int lane = 0; lane < warpSize; ++lane)
    bits |= Mask{compare(a[lane], b[lane])} << lane;
  Mask p = bits, q = ~bits;
  if constexpr (combine != Combine::None) {
    Mask third = *column<Mask>(file, at[4]);
    p = combine == Combine::And ? p & third : combine == Combine::Or ? p | third : p ^ third;
    q = combine == Combine::And ? q & third : combine == Combine::Or ? q | third : q ^ third;
  }
  keepBits(file, at[0], p, mask);
  keepBits(file, at[1], q, mask);
}

template <auto compare, typename T, Combine combine>
void addSetp(OpcodeTable& table, const std::string& name) {
  Opcode opcode{
      .counter = Class::Predicate,
      .lanes = &setPredicate<compare, T, combine>,
      .results = 2,
      .sources = combine == Combine::None ? uint8_t{2} : uint8_t{3},
      .widths = {Width::Predicate, Width::Predicate, widthOf<T>(), widthOf<T>(), Width::Predicate},
      .optionalResult = true};
  table.insert_or_assign(name, opcode);
}

/// One comparison of one type, in all forms.
template <typename T, bool (*compare)(T, T)>
void addComparison(OpcodeTable& table, const std::string& comparison, const std::string& type) {
  addSetp<compare, T, Combine::None>(table, "setp." + comparison + "." + type);
  addSetp<compare, T, Combine::And>(table, "setp." + comparison + ".and." + type);
  addSetp<compare, T, Combine::Or>(table, "setp." + comparison + ".or." + type);
  addSetp<compare, T, Combine::Xor>(table, "setp." + comparison + ".xor." + type);
  for (const char* result : {"u32", "s32"})
    add<+[](T a, T b) { return compare(a, b) ? ~uint32_t{0} : 0; }>(
        table, "set." + comparison + "." + result + "." + type, Class::Predicate);
  add<+[](T a, T b) { return compare(a, b) ? 1.0F : 0.0F; }>(
      table, "set." + comparison + ".f32." + type, Class::Predicate);
}

template <typename T> void addEquality(OpcodeTable& table, const std::string& type) {
  addComparison<T, +[](T a, T b) { return a == b; }>(table, "eq", type);
  addComparison<T, +[](T a, T b) { return a != b; }>(table, "ne", type);
}

template <typename T> void addOrder(OpcodeTable& table, const std::string& type) {
  addEquality<T>(table, type);
  addComparison<T, +[](T a, T b) { return a < b; }>(table, "lt", type);
  addComparison<T, +[](T a, T b) { return a <= b; }>(table, "le", type);
  addComparison<T, +[](T a, T b) { return a > b; }>(table, "gt", type);
  addComparison<T, +[](T a, T b) { return a >= b; }>(table, "ge", type);
}

/// Unsigned comparisons have a second name each.
template <typename T> void addUnsignedOrder(OpcodeTable& table, const std::string& type) {
  addOrder<T>(table, type);
  addComparison<T, +[](T a, T b) { return a < b; }>(table, "lo", type);
  addComparison<T, +[](T a, T b) { return a <= b; }>(table, "ls", type);
  addComparison<T, +[](T a, T b) { return a > b; }>(table, "hi", type);
  addComparison<T, +[](T a, T b) { return a >= b; }>(table, "hs", type);
}

/// Ordered comparisons are false with a NaN, those with a u true.
template <typename T> void addFloatOrder(OpcodeTable& table, const std::string& type) {
  addOrder<T>(table, type);
  addComparison<T, +[](T a, T b) { return a == a && b == b && a != b; }>(table, "ne", type);
  addComparison<T, +[](T a, T b) { return !(a < b || a > b); }>(table, "equ", type);
  addComparison<T, +[](T a, T b) { return a != b; }>(table, "neu", type);
  addComparison<T, +[](T a, T b) { return !(a >= b); }>(table, "ltu", type);
  addComparison<T, +[](T a, T b) { return !(a > b); }>(table, "leu", type);
  addComparison<T, +[](T a, T b) { return !(a <= b); }>(table, "gtu", type);
  addComparison<T, +[](T a, T b) { return !(a < b); }>(table, "geu", type);
  addComparison<T, +[](T a, T b) { return a == a && b == b; }>(table, "num", type);
  addComparison<T, +[](T a, T b) { return a != a || b != b; }>(table, "nan", type);
}

template <typename T> void addSelect(OpcodeTable& table, std::initializer_list<const char*> types) {
  for (const char* type : types) {
    std::string name = type;
    add<+[](T a, T b, bool c) { return c ? a : b; }>(table, "selp." + name, Class::Move);
    add<+[](T a, T b, int32_t c) { return c >= 0 ? a : b; }>(table, "slct." + name + ".s32",
                                                             Class::Move);
    add<+[](T a, T b, float c) { return c >= 0 ? a : b; }>(table, "slct." + name + ".f32",
                                                           Class::Move);
  }
}

} // namespace

void addCompare(OpcodeTable& table) {
  addEquality<uint16_t>(table, "b16");
  addEquality<uint32_t>(table, "b32");
  addEquality<uint64_t>(table, "b64");
  addOrder<int16_t>(table, "s16");
  addOrder<int32_t>(table, "s32");
  addOrder<int64_t>(table, "s64");
  addUnsignedOrder<uint16_t>(table, "u16");
  addUnsignedOrder<uint32_t>(table, "u32");
  addUnsignedOrder<uint64_t>(table, "u64");
  addFloatOrder<float>(table, "f32");
  addFloatOrder<double>(table, "f64");
  addSelect<uint16_t>(table, {"b16", "u16", "s16"});
  addSelect<uint32_t>(table, {"b32", "u32", "s32", "f32"});
  addSelect<uint64_t>(table, {"b64", "u64", "s64", "f64"});
}

} // namespace titan::ptx
