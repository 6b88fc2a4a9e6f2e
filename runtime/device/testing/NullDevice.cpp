#include "runtime/device/testing/NullDevice.h"

namespace titan::testing {

NullDevice::NullDevice(int64_t bytes, bool hasWindow)
    : NullDevice(HostMemory::create(bytes).take(), hasWindow) {}

NullDevice::NullDevice(HostMemory memory, bool hasWindow)
    : HostDevice(memory.bytes().data(), static_cast<int64_t>(memory.bytes().size())),
      memory_(std::move(memory)), hasWindow_(hasWindow) {}

Status NullDevice::note(std::string call) {
  const bool fails = failAt && calls.size() >= *failAt;
  calls.push_back(std::move(call));
  return fails ? Status(error) : Status();
}

Status NullDevice::run(uint32_t function, CommandObserver*) {
  TITAN_TRY(note(fmt::format("run {}", function)));
  if (body)
    body(function, arena());
  return {};
}

Status NullDevice::upload(int64_t offset, std::span<const char> from) {
  TITAN_TRY(note(fmt::format("upload {} {}", offset, from.size())));
  return HostDevice::upload(offset, from);
}

Status NullDevice::download(int64_t offset, std::span<char> into) {
  TITAN_TRY(note(fmt::format("download {} {}", offset, into.size())));
  return HostDevice::download(offset, into);
}

Status NullDevice::fill(int64_t offset, int64_t bytes, char value) {
  TITAN_TRY(note(fmt::format("fill {} {}", offset, bytes)));
  return HostDevice::fill(offset, bytes, value);
}

Device::Event NullDevice::record() {
  (void)note(fmt::format("record {}", ++events_));
  return {events_};
}

Status NullDevice::wait(Event event) { return note(fmt::format("wait {}", event.number)); }

Result<std::span<char>> NullDevice::hostBuffer(int64_t bytes) {
  TITAN_TRY(note(fmt::format("hostBuffer {}", bytes)));
  return HostDevice::hostBuffer(bytes);
}

std::span<char> NullDevice::window(int64_t offset, int64_t bytes) {
  return hasWindow_ ? HostDevice::window(offset, bytes) : std::span<char>();
}

} // namespace titan::testing
