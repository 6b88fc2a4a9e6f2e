// Another device whose calls can be made to fail: what a lost card, or a kernel that ran astray,
// looks like to a job. Without a window, so that everything is a call.
#pragma once

#include "runtime/device/Device.h"

#include <functional>
#include <memory>
#include <string_view>

namespace titan::testing {

class FaultDevice final : public Device {
public:
  /// Asked before each call with its name ("run", "upload", "download", "fill", "wait",
  /// "hostBuffer"); once it says true, this call and every later one return `error`.
  using Fails = std::function<bool(std::string_view call)>;

  FaultDevice(std::unique_ptr<Device> device, Fails fails, Error error)
      : Device(device->bytes()), device_(std::move(device)), fails_(std::move(fails)),
        error_(std::move(error)) {}

  Status run(uint32_t function, CommandObserver* observer) override {
    TITAN_TRY(check("run"));
    return device_->run(function, observer);
  }
  Status upload(int64_t offset, std::span<const char> from) override {
    TITAN_TRY(check("upload"));
    return device_->upload(offset, from);
  }
  Status download(int64_t offset, std::span<char> into) override {
    TITAN_TRY(check("download"));
    return device_->download(offset, into);
  }
  Status fill(int64_t offset, int64_t bytes, char value) override {
    TITAN_TRY(check("fill"));
    return device_->fill(offset, bytes, value);
  }
  Event record() override { return device_->record(); }
  Status wait(Event event) override {
    TITAN_TRY(check("wait"));
    return device_->wait(event);
  }
  Result<std::span<char>> hostBuffer(int64_t bytes) override {
    TITAN_TRY(check("hostBuffer"));
    return device_->hostBuffer(bytes);
  }
  std::span<char> window(int64_t, int64_t) override { return {}; }

private:
  Status check(std::string_view call) {
    failed_ = failed_ || fails_(call);
    return failed_ ? Status(error_) : Status();
  }

  std::unique_ptr<Device> device_;
  Fails fails_;
  Error error_;
  bool failed_ = false;
};

} // namespace titan::testing
