// What devices share whose arena is memory of the process: transfers are copies, done when they
// return, and the window shows everything.
#pragma once

#include "runtime/device/Device.h"

#include <cstdlib>
#include <memory>
#include <vector>

namespace titan {

/// Zeros, aligned to pages. Environment when there is not so much memory.
class HostMemory {
public:
  static Result<HostMemory> create(int64_t bytes);
  std::span<char> bytes() const { return {data_.get(), size_}; }

private:
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };
  std::unique_ptr<char, Free> data_;
  size_t size_ = 0;
};

class HostDevice : public Device {
public:
  Status upload(int64_t offset, std::span<const char> from) override;
  Status download(int64_t offset, std::span<char> into) override;
  Status fill(int64_t offset, int64_t bytes, char value) override;
  Event record() override { return {}; }
  Status wait(Event) override { return {}; }
  Result<std::span<char>> hostBuffer(int64_t bytes) override;
  std::span<char> window(int64_t offset, int64_t bytes) override {
    return {arena_ + offset, static_cast<size_t>(bytes)};
  }

protected:
  /// `arena` has `bytes` bytes and lives as long as the device.
  HostDevice(char* arena, int64_t bytes) : Device(bytes), arena_(arena) {}
  char* arena() const { return arena_; }

private:
  char* arena_;
  std::vector<HostMemory> buffers_;
};

} // namespace titan
