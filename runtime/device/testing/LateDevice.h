// A device as late as the contract of Device allows, and without a window: it does nothing before
// somebody waits for it. An upload reads its source then, and until then a download's target holds
// garbage. Who reads memory behind the interface, or forgets to wait, computes something else.
//
// It runs on another device, which has a window, so a job on it must give that one's bits.
#pragma once

#include "runtime/device/Device.h"

#include <deque>
#include <functional>
#include <memory>
#include <optional>

namespace titan::testing {

class LateDevice final : public Device {
public:
  static constexpr char garbage = '\xcd';

  explicit LateDevice(std::unique_ptr<Device> device);

  /// With an observer at once, after all calls before it.
  Status run(uint32_t function, CommandObserver* observer) override;
  Status upload(int64_t offset, std::span<const char> from) override;
  Status download(int64_t offset, std::span<char> into) override;
  Status fill(int64_t offset, int64_t bytes, char value) override;
  Event record() override { return {made_}; }
  /// Does the calls up to the event, and no more.
  Status wait(Event event) override;
  Result<std::span<char>> hostBuffer(int64_t bytes) override { return device_->hostBuffer(bytes); }
  std::span<char> window(int64_t, int64_t) override { return {}; }
  /// As late: its downloads are made when somebody waits for them, by whoever does.
  Result<std::unique_ptr<StateReader>> reader() override;

private:
  class Reader;
  using Call = std::function<Status(Device&)>;
  Status defer(Call call);

  std::unique_ptr<Device> device_;
  std::deque<Call> pending_;
  uint64_t made_ = 0, done_ = 0; ///< calls
  bool observed_ = false;        ///< inside of a run with an observer
  std::optional<Error> error_;   ///< of the first call that failed
};

} // namespace titan::testing
