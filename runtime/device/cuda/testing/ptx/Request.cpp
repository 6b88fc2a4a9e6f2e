#include "runtime/device/cuda/testing/ptx/Request.h"

#include <algorithm>

namespace titan::ptx {

bool Request::locate(const Address& address, Space of) {
  space = of;
  computeAddresses(address);
  if (!resolveGeneric() || !look())
    return false;
  ++machine.requests;
  return true;
}

void Request::computeAddresses(const Address& address) {
  const char* column = warp.file + instruction.at[address.operand];
  const uint64_t offset = address.offset;
  if (!address.registered)
    at.fill(offset);
  else if (address.narrow)
    for (int lane = 0; lane < warpSize; ++lane)
      at[lane] = reinterpret_cast<const uint32_t*>(column)[lane] + offset;
  else
    for (int lane = 0; lane < warpSize; ++lane)
      at[lane] = reinterpret_cast<const uint64_t*>(column)[lane] + offset;
}

static bool isSharedWindow(uint64_t address) {
  return address >= sharedGenericBase && address - sharedGenericBase < uint64_t{1} << 32;
}

/// A generic address is one of shared memory by its window, else one of global memory.
bool Request::resolveGeneric() {
  if (space != Space::Generic)
    return true;
  bool isShared = isSharedWindow(at[firstLane(mask)]);
  for (Mask left = mask; left; left &= left - 1) {
    uint64_t& address = at[firstLane(left)];
    if (isSharedWindow(address) != isShared)
      return fail(firstLane(left), "some lanes address shared memory and some global");
    address -= isShared ? sharedGenericBase : 0;
  }
  space = isShared ? Space::Shared : Space::Global;
  return true;
}

bool Request::look() {
  const uint64_t first = at[firstLane(mask)];
  uint64_t low = 0, different = 0, broken = 0;
  if (mask == ~Mask{0})
    for (int lane = 0; lane < warpSize; ++lane) {
      low |= at[lane];
      different |= at[lane] ^ first;
      broken |= at[lane] ^ (first + lane * bytes);
    }
  else
    for (int lane = 0; lane < warpSize; ++lane) {
      const uint64_t takesPart = -uint64_t{mask >> lane & 1};
      low |= at[lane] & takesPart;
      different |= (at[lane] ^ first) & takesPart;
      broken = 1;
    }
  shape = different == 0 ? Shape::Equal : broken == 0 ? Shape::Consecutive : Shape::Scattered;
  return (low & (bytes - 1)) == 0 || misaligned();
}

bool Request::misaligned() {
  for (Mask left = mask;; left &= left - 1)
    if (uint64_t address = at[firstLane(left)]; address & (bytes - 1))
      return fail(firstLane(left),
                  fmt::format("{} {} bytes at 0x{:x}, which is not a multiple of {}", verb(), bytes,
                              address, bytes));
}

void Request::count(Traffic& traffic, int64_t size) const {
  ++traffic.requests;
  traffic.bytes += size * lanesOf(mask);
  ++traffic.byWidth[std::min(__builtin_ctzll(bytes), 4)];
}

} // namespace titan::ptx
