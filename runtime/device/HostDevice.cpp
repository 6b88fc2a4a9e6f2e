#include "runtime/device/HostDevice.h"

#include <cstring>

namespace titan {

Result<HostMemory> HostMemory::create(int64_t bytes) {
  constexpr size_t page = 4096;
  const size_t rounded = (static_cast<size_t>(bytes) + page) / page * page;
  HostMemory memory;
  memory.data_.reset(static_cast<char*>(std::aligned_alloc(page, rounded)));
  if (!memory.data_)
    return Error::environment("cannot reserve {} bytes of host memory", bytes);
  memory.size_ = static_cast<size_t>(bytes);
  std::memset(memory.data_.get(), 0, rounded);
  return memory;
}

Status HostDevice::upload(int64_t offset, std::span<const char> from) {
  if (!from.empty())
    std::memcpy(arena_ + offset, from.data(), from.size());
  return {};
}

Status HostDevice::download(int64_t offset, std::span<char> into) {
  if (!into.empty())
    std::memcpy(into.data(), arena_ + offset, into.size());
  return {};
}

Status HostDevice::fill(int64_t offset, int64_t bytes, char value) {
  std::memset(arena_ + offset, value, static_cast<size_t>(bytes));
  return {};
}

Result<std::span<char>> HostDevice::hostBuffer(int64_t bytes) {
  buffers_.push_back(TITAN_TRY(HostMemory::create(bytes)));
  return buffers_.back().bytes();
}

} // namespace titan
