// A device that runs nothing: it keeps the bytes and a list of the calls, for tests of their order,
// and fails at a call on demand.
#pragma once

#include "runtime/device/HostDevice.h"

#include <functional>
#include <optional>
#include <string>

namespace titan::testing {

class NullDevice final : public HostDevice {
public:
  /// Without `hasWindow` the bytes are reached by transfers only.
  explicit NullDevice(int64_t bytes, bool hasWindow = false);

  Status run(uint32_t function, CommandObserver* observer) override;
  Status upload(int64_t offset, std::span<const char> from) override;
  Status download(int64_t offset, std::span<char> into) override;
  Status fill(int64_t offset, int64_t bytes, char value) override;
  Event record() override;
  Status wait(Event event) override;
  Result<std::span<char>> hostBuffer(int64_t bytes) override;
  std::span<char> window(int64_t offset, int64_t bytes) override;

  /// "run 0", "upload 64 8", "download 64 8", "fill 0 64", "record 1", "wait 1", "hostBuffer 4096":
  /// offsets and bytes. window() is no call.
  std::vector<std::string> calls;
  /// Stands for the function's commands.
  std::function<void(uint32_t function, char* arena)> body;
  /// Call number failAt, from 0, returns `error`, and so do all after it.
  std::optional<size_t> failAt;
  Error error = Error::runFailed("'a command' of step failed");

private:
  explicit NullDevice(HostMemory memory, bool hasWindow);
  Status note(std::string call);

  HostMemory memory_;
  bool hasWindow_;
  uint64_t events_ = 0;
};

} // namespace titan::testing
