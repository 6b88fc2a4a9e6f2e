#include "runtime/device/testing/LateDevice.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace titan::testing {

class LateDevice::Reader final : public StateReader {
public:
  explicit Reader(LateDevice& device) : device_(&device), copies_(new Copies) {}

  Status download(int64_t offset, std::span<char> into) override {
    std::ranges::fill(into, garbage);
    const std::lock_guard lock(copies_->mutex);
    copies_->pending.emplace_back(
        device_->device_->window(offset, static_cast<int64_t>(into.size())), into);
    return {};
  }
  Status wait() override {
    copies_->make();
    return {};
  }
  Status hold() override {
    return device_->defer([copies = copies_](Device&) -> Status {
      copies->make();
      return {};
    });
  }

private:
  struct Copies {
    std::mutex mutex;
    std::vector<std::pair<std::span<const char>, std::span<char>>> pending;

    void make() {
      const std::lock_guard lock(mutex);
      for (const auto& [from, into] : pending)
        std::ranges::copy(from, into.begin());
      pending.clear();
    }
  };

  LateDevice* device_;
  std::shared_ptr<Copies> copies_; ///< a call of the device may come to them later
};

Result<std::unique_ptr<StateReader>> LateDevice::reader() {
  return std::unique_ptr<StateReader>(std::make_unique<Reader>(*this));
}

LateDevice::LateDevice(std::unique_ptr<Device> device)
    : Device(device->bytes()), device_(std::move(device)) {}

Status LateDevice::defer(Call call) {
  if (error_)
    return *error_;
  if (observed_)
    return call(*device_);
  ++made_;
  pending_.push_back(std::move(call));
  return {};
}

Status LateDevice::run(uint32_t function, CommandObserver* observer) {
  passGate();
  if (!observer)
    return defer([function](Device& device) { return device.run(function, nullptr); });
  TITAN_TRY(wait(record()));
  observed_ = true;
  Status status = device_->run(function, observer);
  observed_ = false;
  if (!status.ok())
    error_ = status.error();
  return status;
}

Status LateDevice::upload(int64_t offset, std::span<const char> from) {
  return defer([=](Device& device) { return device.upload(offset, from); });
}

Status LateDevice::download(int64_t offset, std::span<char> into) {
  std::ranges::fill(into, garbage);
  return defer([=](Device& device) { return device.download(offset, into); });
}

Status LateDevice::fill(int64_t offset, int64_t bytes, char value) {
  return defer([=](Device& device) { return device.fill(offset, bytes, value); });
}

Status LateDevice::wait(Event event) {
  while (!error_ && done_ < event.number) {
    Status status = pending_.front()(*device_);
    pending_.pop_front();
    ++done_;
    if (!status.ok())
      error_ = status.takeError();
  }
  return error_ ? Status(*error_) : Status();
}

} // namespace titan::testing
