// mov, its packed forms, and how memory's elements reach registers.
#include "runtime/device/cuda/testing/ptx/Lanes.h"

namespace titan::ptx {
namespace {

template <typename T> void addMoves(OpcodeTable& table, std::initializer_list<const char*> types) {
  for (const char* type : types)
    add<+[](T a) { return a; }>(table, std::string("mov.") + type, Class::Move);
}

template <typename Whole, typename Part> constexpr int partsOf = sizeof(Whole) / sizeof(Part);

/// mov.b32 r, {a, b}: the first part is the lowest.
template <typename Whole, typename Part> void pack(char* file, const uint32_t* at, Mask mask) {
  alignas(64) Whole result[warpSize]{};
  for (int part = 0; part < partsOf<Whole, Part>; ++part)
    for (int lane = 0; lane < warpSize; ++lane)
      result[lane] |= Whole{column<Part>(file, at[1 + part])[lane]} << (8 * sizeof(Part) * part);
  keep(file, at[0], result, mask);
}

/// mov.b32 {a, b}, r. The source is read before a part is written: it may be one of them.
template <typename Whole, typename Part> void unpack(char* file, const uint32_t* at, Mask mask) {
  constexpr int parts = partsOf<Whole, Part>;
  alignas(64) Part result[parts][warpSize];
  const Whole* source = column<Whole>(file, at[parts]);
  for (int part = 0; part < parts; ++part)
    for (int lane = 0; lane < warpSize; ++lane)
      result[part][lane] = static_cast<Part>(source[lane] >> (8 * sizeof(Part) * part));
  for (int part = 0; part < parts; ++part)
    keep(file, at[part], result[part], mask);
}

template <typename Whole, typename Part>
void addPacking(OpcodeTable& table, const std::string& type) {
  constexpr int parts = partsOf<Whole, Part>;
  Opcode packing{.counter = Class::Move,
                 .lanes = &pack<Whole, Part>,
                 .results = 1,
                 .sources = parts,
                 .widths = {widthOf<Whole>()}};
  Opcode unpacking{
      .counter = Class::Move, .lanes = &unpack<Whole, Part>, .results = parts, .sources = 1};
  for (int part = 0; part < parts; ++part) {
    packing.widths[1 + part] = widthOf<Part>();
    unpacking.widths[part] = widthOf<Part>();
  }
  unpacking.widths[parts] = widthOf<Whole>();
  std::string count = std::to_string(parts);
  table.insert_or_assign("mov." + type + " pack " + count, packing);
  table.insert_or_assign("mov." + type + " unpack " + count, unpacking);
}

/// Calls `each(lane)` for the lanes of `mask`.
template <typename Each> void forLanes(Mask mask, Each each) {
  if (mask == ~Mask{0})
    for (int lane = 0; lane < warpSize; ++lane)
      each(lane);
  else
    for (; mask; mask &= mask - 1)
      each(__builtin_ctz(mask));
}

/// S is the element in memory, R the register's bytes.
template <typename S, typename R>
void load(char* to, char* const* host, int64_t offset, Mask mask) {
  forLanes(mask, [&](int lane) {
    S value;
    std::memcpy(&value, host[lane] + offset, sizeof(S));
    R extended = static_cast<R>(value);
    std::memcpy(to + lane * sizeof(R), &extended, sizeof(R));
  });
}

template <typename S, typename R>
void store(char* from, char* const* host, int64_t offset, Mask mask) {
  forLanes(mask,
           [&](int lane) { std::memcpy(host[lane] + offset, from + lane * sizeof(R), sizeof(S)); });
}

template <typename S> MoveFunction loadOf(int width) {
  return width == 2 ? &load<S, uint16_t> : width == 4 ? &load<S, uint32_t> : &load<S, uint64_t>;
}
template <typename S> MoveFunction storeOf(int width) {
  return width == 2 ? &store<S, uint16_t> : width == 4 ? &store<S, uint32_t> : &store<S, uint64_t>;
}

} // namespace

MoveFunction loadFunction(int bytes, int width, bool isSigned) {
  switch (bytes) {
  case 1:
    return isSigned ? loadOf<int8_t>(width) : loadOf<uint8_t>(width);
  case 2:
    return isSigned ? loadOf<int16_t>(width) : loadOf<uint16_t>(width);
  case 4:
    return isSigned ? loadOf<int32_t>(width) : loadOf<uint32_t>(width);
  default:
    return loadOf<uint64_t>(width);
  }
}

MoveFunction storeFunction(int bytes, int width) {
  switch (bytes) {
  case 1:
    return storeOf<uint8_t>(width);
  case 2:
    return storeOf<uint16_t>(width);
  case 4:
    return storeOf<uint32_t>(width);
  default:
    return storeOf<uint64_t>(width);
  }
}

void addMove(OpcodeTable& table) {
  addMoves<bool>(table, {"pred"});
  addMoves<uint16_t>(table, {"b16", "u16", "s16"});
  addMoves<uint32_t>(table, {"b32", "u32", "s32", "f32"});
  addMoves<uint64_t>(table, {"b64", "u64", "s64", "f64"});
  addPacking<uint32_t, uint16_t>(table, "b32");
  addPacking<uint64_t, uint32_t>(table, "b64");
  addPacking<uint64_t, uint16_t>(table, "b64");
}

} // namespace titan::ptx
