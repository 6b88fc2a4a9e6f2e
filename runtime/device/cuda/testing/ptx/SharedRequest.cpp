// Accesses of shared memory: inside it, in order with others, and how often banks are passed over.
#include "runtime/device/cuda/testing/ptx/Request.h"

#include <algorithm>

namespace titan::ptx {

bool Request::insideShared() {
  const SharedMemory& memory = *machine.shared;
  auto last = int64_t{memory.size()} - bytes;
  int64_t outside = 0; // negative where a lane lies before the first byte or behind the last
  for (int lane = 0; lane < warpSize; ++lane) {
    auto offset = static_cast<int64_t>(at[lane] - sharedBase);
    outside |= mask >> lane & 1 ? offset | (last - offset) : 0;
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
  uint64_t previous = 0, beforeIt = 0;
  for (Mask left = mask; left; left &= left - 1) {
    int lane = firstLane(left);
    uint64_t address = at[lane];
    // After two lanes of a warp a third changes nothing.
    bool known = address == previous && address == beforeIt;
    if (!known && !(asWarp ? memory.readByWarp(address - sharedBase, bytes, thread(lane), wrong)
                           : memory.read(address - sharedBase, bytes, thread(lane), wrong)))
      return fail(lane, wrong);
    beforeIt = previous;
    previous = address;
  }
  return true;
}

void Request::countShared(Traffic& traffic) {
  count(traffic, bytes);
  if (shape == Shape::Scattered)
    traffic.bankConflicts += bankConflicts();
}

/// A pass serves 32 words of 4 bytes in 32 banks; equal words are one. Accesses of 8 and 16 bytes
/// go by halves and quarters of a warp.
int64_t Request::bankConflicts() const { return oneWordABank() ? 0 : countConflicts(); }

bool Request::oneWordABank() const {
  if (bytes > 4)
    return false;
  std::array<uint64_t, 32> held{};
  for (Mask left = mask; left; left &= left - 1) {
    uint64_t word = at[firstLane(left)] / 4; // never 0: addresses start at sharedBase
    uint64_t& bank = held[word % 32];
    if (bank != 0 && bank != word)
      return false;
    bank = word;
  }
  return true;
}

int64_t Request::countConflicts() const {
  int together = bytes <= 4 ? warpSize : warpSize * 4 / static_cast<int>(bytes);
  int64_t conflicts = 0;
  for (int first = 0; first < warpSize; first += together) {
    std::array<uint64_t, 4 * warpSize> words;
    size_t count = 0;
    for (int lane = first; lane < first + together; ++lane)
      for (int64_t byte = 0; (mask >> lane & 1) && byte < bytes; byte += 4)
        words[count++] = (at[lane] + byte) / 4;
    std::sort(words.begin(), words.begin() + count);
    count = std::unique(words.begin(), words.begin() + count) - words.begin();
    std::array<int, 32> passes{};
    for (size_t i = 0; i < count; ++i)
      ++passes[words[i] % 32];
    conflicts += std::max(0, *std::max_element(passes.begin(), passes.end()) - 1);
  }
  return conflicts;
}

} // namespace titan::ptx
