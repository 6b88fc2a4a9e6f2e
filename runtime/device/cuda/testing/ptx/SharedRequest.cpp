// Accesses of shared memory: inside it, in order with others, and how often banks are passed over.
#include "runtime/device/cuda/testing/ptx/Request.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace titan::ptx {

namespace {

constexpr int64_t bankBytes = 128, wordBytes = 4;

} // namespace

bool Request::insideShared() {
  const SharedMemory& memory = *machine.shared;
  auto last = int64_t{memory.size()} - bytes;
  int64_t outside = 0; // negative where a lane lies before the first byte or behind the last
  for (int lane = 0; lane < warpSize; ++lane) {
    auto offset = static_cast<int64_t>(at[lane] - sharedBase);
    outside |= (offset | (last - offset)) & -int64_t{mask >> lane & 1};
  }
  if (outside >= 0)
    return true;
  for (Mask left = mask;; left &= left - 1) {
    uint64_t address = at[firstLane(left)];
    auto offset = static_cast<int64_t>(address - sharedBase);
    if (offset < 0 || offset > last)
      return fail(firstLane(left),
                  fmt::format("{} {} bytes at shared address {}: the block's {} bytes start at "
                              "{}",
                              verb(), bytes, address, memory.size(), sharedBase));
  }
}

bool Request::readShared(bool asWarp) {
  SharedMemory& memory = *machine.shared;
  std::string wrong;
  if (asWarp || shape == Shape::Consecutive) {
    for (Mask left = mask; left; left &= left - 1) {
      int lane = firstLane(left);
      if (!(asWarp ? memory.readByWarp(sharedOffset(lane), bytes, thread(lane), wrong)
                   : memory.read(sharedOffset(lane), bytes, thread(lane), wrong)))
        return fail(lane, wrong);
    }
    return true;
  }
  const Readers readers = readersByAddress();
  for (int i = 0; i < readers.count; ++i) {
    const int first = readers.first[i], second = readers.second[i];
    const uint64_t offset = sharedOffset(first);
    if (second >= 0 && memory.quickReadByMany(offset, bytes, thread(first)))
      continue;
    for (int lane : {first, second})
      if (lane >= 0 && !memory.read(offset, bytes, thread(lane), wrong))
        return fail(lane, wrong);
  }
  return true;
}

/// After two lanes of a warp a third that reads the same changes nothing.
Request::Readers Request::readersByAddress() const {
  Readers readers;
  constexpr size_t places = 2 * warpSize;
  std::array<uint8_t, places> held{}; // number among the readers, plus one
  const int shift = __builtin_ctzll(bytes);
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = firstLane(left);
    size_t place = (at[lane] >> shift) % places;
    while (held[place] != 0 && at[readers.first[held[place] - 1]] != at[lane])
      place = (place + 1) % places;
    if (held[place] != 0) {
      readers.second[held[place] - 1] = static_cast<int8_t>(lane);
      continue;
    }
    readers.first[readers.count] = static_cast<int8_t>(lane);
    readers.second[readers.count] = -1;
    held[place] = static_cast<uint8_t>(++readers.count);
  }
  return readers;
}

void Request::countShared(Traffic& traffic) {
  count(traffic, bytes);
  if (shape == Shape::Scattered)
    traffic.bankConflicts += bankConflicts();
}

/// A pass serves 32 words of 4 bytes in 32 banks; equal words are one. Accesses of 8 and 16 bytes
/// go by halves and quarters of a warp. As they are aligned, a lane's words are a unit that shares
/// its banks with others as a whole.
int64_t Request::bankConflicts() const {
  const int64_t unit = std::max<int64_t>(bytes, wordBytes);
  const int units = static_cast<int>(bankBytes / unit), shift = __builtin_ctzll(unit);
  if (mask == ~Mask{0} && fillsBanks(shift, units))
    return 0;
  int64_t conflicts = 0;
  for (int first = 0; first < warpSize; first += units) {
    const Mask lanes = mask & (units == warpSize ? ~Mask{0} : ((Mask{1} << units) - 1) << first);
    std::array<uint64_t, warpSize>
        held{}; // never 0 where there is one: addresses start at sharedBase
    bool meet = false;
    for (Mask left = lanes; left; left &= left - 1) {
      const uint64_t number = at[firstLane(left)] >> shift;
      uint64_t& other = held[number % units];
      meet |= other != 0 && other != number;
      other = number;
    }
    if (meet)
      conflicts += passesOf(lanes, shift, units) - 1;
  }
  return conflicts;
}

/// Whether each pass of a whole warp takes every unit of the banks.
bool Request::fillsBanks(int shift, int units) const {
  const auto all = static_cast<uint32_t>((uint64_t{1} << units) - 1);
  std::array<uint32_t, warpSize> taken;
  for (int lane = 0; lane < warpSize; ++lane)
    taken[lane] = uint32_t{1} << (at[lane] >> shift & (units - 1));
  uint32_t missing = 0;
  for (int first = 0; first < warpSize; first += units)
    missing |= all & ~std::accumulate(taken.begin() + first, taken.begin() + first + units, 0U,
                                      std::bit_or<uint32_t>());
  return missing == 0;
}

/// The most different units that meet in one place of the banks.
int64_t Request::passesOf(Mask lanes, int shift, int units) const {
  std::array<uint64_t, warpSize> seen;
  std::array<int64_t, warpSize> passes{};
  auto end = seen.begin();
  for (Mask left = lanes; left; left &= left - 1) {
    const uint64_t number = at[firstLane(left)] >> shift;
    if (std::find(seen.begin(), end, number) != end)
      continue;
    *end++ = number;
    ++passes[number % units];
  }
  return *std::max_element(passes.begin(), passes.end());
}

} // namespace titan::ptx
