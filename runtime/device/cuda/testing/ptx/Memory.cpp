#include "runtime/device/cuda/testing/ptx/Ptx.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace titan::ptx {
namespace {

constexpr int64_t alignment = 256;
/// Between the end of an allocation and the start of the next: what runs over meets nobody.
constexpr uint64_t gap = 4096;

} // namespace

Result<uint64_t> Memory::allocate(int64_t bytes) {
  if (bytes < 0)
    return Error::badInput("an allocation of {} bytes of device memory", bytes);
  bytes = std::max<int64_t>(bytes, 1);
  if (bytes > int64_t{1} << 48)
    return Error::environment("no host memory for {} bytes of a device's", bytes);
  int64_t rounded = (bytes + alignment - 1) / alignment * alignment;
  Allocation made;
  made.address = next_;
  made.size = bytes;
  // Pages that are never touched cost nothing.
  made.bytes = {static_cast<char*>(std::calloc(1, rounded)), std::free};
  made.written = {static_cast<uint8_t*>(std::calloc(1, rounded)), std::free};
  if (!made.bytes || !made.written)
    return Error::environment("no host memory for {} bytes of a device's", bytes);
  uint64_t address = next_;
  next_ += rounded + gap;
  allocations_.emplace(address, std::move(made));
  return address;
}

void Memory::map(std::span<char> host) {
  Allocation mapped;
  mapped.address = reinterpret_cast<uint64_t>(host.data());
  mapped.size = static_cast<int64_t>(host.size());
  mapped.bytes = {host.data(), [](void*) {}};
  mapped.written = {static_cast<uint8_t*>(std::calloc(1, host.size())), std::free};
  allocations_.emplace(mapped.address, std::move(mapped));
}

bool Memory::free(uint64_t address) { return allocations_.erase(address) == 1; }

const Memory::Allocation* Memory::find(uint64_t address) const {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin())
    return nullptr;
  const Allocation& before = std::prev(after)->second;
  return before.holds(address, 1) ? &before : nullptr;
}

std::span<char> Memory::bytes(uint64_t address, int64_t size) {
  const Allocation* allocation = find(address);
  if (!allocation || !allocation->holds(address, size))
    return {};
  return {allocation->bytes.get() + (address - allocation->address), static_cast<size_t>(size)};
}

void Memory::markWritten(uint64_t address, int64_t size) {
  const Allocation* allocation = find(address);
  if (allocation && allocation->holds(address, size))
    std::memset(allocation->written.get() + (address - allocation->address), 0xff, size);
}

std::optional<uint64_t> Memory::firstUnwritten(uint64_t address, int64_t size) const {
  if (size <= 0)
    return std::nullopt;
  const Allocation* allocation = find(address);
  if (!allocation || !allocation->holds(address, size))
    return address;
  const uint8_t* first = allocation->written.get() + (address - allocation->address);
  const uint8_t* unwritten = std::find(first, first + size, uint8_t{0});
  if (unwritten == first + size)
    return std::nullopt;
  return address + (unwritten - first);
}

} // namespace titan::ptx
