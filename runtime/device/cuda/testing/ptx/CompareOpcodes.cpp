// setp, set, selp and slct.
#include "runtime/device/cuda/testing/ptx/Lanes.h"

#include <array>
#include <bit>

namespace titan::ptx {
namespace {

enum class Combine { None, And, Or, Xor };

/// The lanes in which it is true. A function of its own: all forms of a comparison share its loop.
template <auto compare, typename T> [[gnu::noinline]] Mask compared(const T* a, const T* b) {
  Mask bits = 0;
  for (int lane = 0; lane < warpSize; ++lane)
    bits |= Mask{compare(a[lane], b[lane])} << lane;
  return bits;
}

void keepChosen(char* file, uint32_t at, Mask bits, uint32_t yes, Mask mask) {
  uint32_t result[warpSize];
  for (int lane = 0; lane < warpSize; ++lane)
    result[lane] = bits >> lane & 1 ? yes : 0;
  keep(file, at, result, mask);
}

/// p = a ? b, q = its opposite; each then combined with a third predicate.
template <auto compare, typename T, Combine combine>
void setPredicate(char* file, const uint32_t* at, Mask mask) {
  Mask p = compared<compare, T>(column<T>(file, at[2]), column<T>(file, at[3])), q = ~p;
  if constexpr (combine != Combine::None) {
    Mask third = *column<Mask>(file, at[4]);
    p = combine == Combine::And ? p & third : combine == Combine::Or ? p | third : p ^ third;
    q = combine == Combine::And ? q & third : combine == Combine::Or ? q | third : q ^ third;
  }
  keepBits(file, at[0], p, mask);
  keepBits(file, at[1], q, mask);
}

/// The bits of `yes` where it is true, else 0.
template <auto compare, typename T, uint32_t yes>
void setValue(char* file, const uint32_t* at, Mask mask) {
  Mask bits = compared<compare, T>(column<T>(file, at[1]), column<T>(file, at[2]));
  keepChosen(file, at[0], bits, yes, mask);
}

/// One comparison of one type in all its forms; in the order of Combine.
struct Forms {
  std::array<LaneFunction, 4> predicates;
  LaneFunction allBits, one;
};

// Not a template: what is made for each comparison is kept small.
void addForms(OpcodeTable& table, const std::string& comparison, const std::string& type,
              Width width, const Forms& forms) {
  constexpr std::array<const char*, 4> combined{".", ".and.", ".or.", ".xor."};
  for (size_t form = 0; form < combined.size(); ++form)
    table.insert_or_assign(
        "setp." + comparison + combined[form] + type,
        Opcode{.counter = Class::Predicate,
               .lanes = forms.predicates[form],
               .results = 2,
               .sources = form == 0 ? uint8_t{2} : uint8_t{3},
               .widths = {Width::Predicate, Width::Predicate, width, width, Width::Predicate},
               .optionalResult = true});
  for (const char* result : {"u32", "s32", "f32"})
    table.insert_or_assign("set." + comparison + "." + result + "." + type,
                           Opcode{.counter = Class::Predicate,
                                  .lanes = *result == 'f' ? forms.one : forms.allBits,
                                  .results = 1,
                                  .sources = 2,
                                  .widths = {Width::W32, width, width}});
}

template <typename T, bool (*compare)(T, T)>
void addComparison(OpcodeTable& table, const char* comparison, const char* type) {
  addForms(table, comparison, type, widthOf<T>(),
           {.predicates = {&setPredicate<compare, T, Combine::None>,
                           &setPredicate<compare, T, Combine::And>,
                           &setPredicate<compare, T, Combine::Or>,
                           &setPredicate<compare, T, Combine::Xor>},
            .allBits = &setValue<compare, T, ~uint32_t{0}>,
            .one = &setValue<compare, T, std::bit_cast<uint32_t>(1.0F)>});
}

template <typename T> void addEquality(OpcodeTable& table, const char* type) {
  addComparison<T, +[](T a, T b) { return a == b; }>(table, "eq", type);
  addComparison<T, +[](T a, T b) { return a != b; }>(table, "ne", type);
}

template <typename T> void addOrder(OpcodeTable& table, const char* type) {
  addEquality<T>(table, type);
  addComparison<T, +[](T a, T b) { return a < b; }>(table, "lt", type);
  addComparison<T, +[](T a, T b) { return a <= b; }>(table, "le", type);
  addComparison<T, +[](T a, T b) { return a > b; }>(table, "gt", type);
  addComparison<T, +[](T a, T b) { return a >= b; }>(table, "ge", type);
}

/// Unsigned comparisons have a second name each.
template <typename T> void addUnsignedOrder(OpcodeTable& table, const char* type) {
  addOrder<T>(table, type);
  addComparison<T, +[](T a, T b) { return a < b; }>(table, "lo", type);
  addComparison<T, +[](T a, T b) { return a <= b; }>(table, "ls", type);
  addComparison<T, +[](T a, T b) { return a > b; }>(table, "hi", type);
  addComparison<T, +[](T a, T b) { return a >= b; }>(table, "hs", type);
}

/// Ordered comparisons are false with a NaN, those with a u true.
template <typename T> void addFloatOrder(OpcodeTable& table, const char* type) {
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
