// Another device whose calls can be made to fail: what a lost card, or a kernel that ran astray,
// looks like to a job. Without a window, so that everything is a call.
#pragma once

#include "runtime/device/Device.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

namespace titan::testing {

class FaultDevice final : public Device {
public:
  /// Asked before each call, one after the other, with its name ("run", "upload", "download",
  /// "fill", "wait", "hostBuffer", "hold"); once it says true, this call and every later one return
  /// `error`. A reader fails by itself: the state of a step that fails can be read.
  using Fails = std::function<bool(std::string_view call)>;

  FaultDevice(std::unique_ptr<Device> device, Fails fails, Error error)
      : Device(device->bytes()), device_(std::move(device)), fails_(std::move(fails)),
        error_(std::move(error)) {}

  Status run(uint32_t function, CommandObserver* observer) override {
    passGate();
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
  Result<std::unique_ptr<StateReader>> reader() override {
    return std::unique_ptr<StateReader>(
        std::make_unique<Reader>(*this, TITAN_TRY(device_->reader())));
  }

private:
  /// By another reader, or by the window of who has none.
  class Reader final : public StateReader {
  public:
    Reader(FaultDevice& device, std::unique_ptr<StateReader> reader)
        : device_(&device), reader_(std::move(reader)) {}

    Status download(int64_t offset, std::span<char> into) override {
      TITAN_TRY(device_->check("download", failed_));
      if (reader_)
        return reader_->download(offset, into);
      const auto size = static_cast<int64_t>(into.size());
      std::ranges::copy(device_->device_->window(offset, size), into.begin());
      return {};
    }
    Status wait() override {
      TITAN_TRY(device_->check("wait", failed_));
      return reader_ ? reader_->wait() : Status();
    }
    Status hold() override {
      TITAN_TRY(device_->check("hold"));
      return reader_ ? reader_->hold() : Status();
    }

  private:
    FaultDevice* device_;
    std::unique_ptr<StateReader> reader_;
    bool failed_ = false;
  };

  Status check(std::string_view call) { return check(call, failed_); }
  Status check(std::string_view call, bool& failed) {
    const std::lock_guard lock(mutex_); // readers have threads of their own
    failed = failed || fails_(call);
    return failed ? Status(error_) : Status();
  }

  std::unique_ptr<Device> device_;
  Fails fails_;
  Error error_;
  std::mutex mutex_;
  bool failed_ = false;
};

} // namespace titan::testing
