// What runs a program: one arena and the functions of one table, on the CPU or on a card.
//
// One thread makes the calls. They take effect in their order, whenever that is: a device may have
// done a call when it returns, or be far behind. What the host relies on, it waits for:
//
//   TITAN_TRY(device.upload(input, batch));
//   TITAN_TRY(device.run(step, nullptr));
//   TITAN_TRY(device.download(loss, bytes));
//   TITAN_TRY(device.wait(device.record()));   // now `bytes` is the loss, and `batch` is free
//
// A factory makes a device that is ready: its arena is allocated and touched, its functions are
// prepared. Later only hostBuffer() allocates. Offsets are bytes from the start of the arena.
#pragma once

#include "runtime/device/CommandObserver.h"
#include "runtime/program/Error.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

namespace titan {

/// Copies states to the host beside the runs, by a way of its own: what the calls that were waited
/// for left there, until the gate (Device::setGate). One thread at a time calls it, the device's or
/// another. The device outlives it.
class StateReader {
public:
  virtual ~StateReader() = default;

  /// `offset` is of the arena; `into` is filled when the call was waited for.
  virtual Status download(int64_t offset, std::span<char> into) = 0;
  /// Returns when all downloads are done. Any thread may call it, beside the others.
  virtual Status wait() = 0;
  /// Every call of the device from here on takes effect when these downloads are done. By the
  /// device's thread; an error is also that of every later call of the device.
  virtual Status hold() = 0;
};

class Device {
public:
  /// All calls up to a moment.
  struct Event {
    uint64_t number = 0;
  };

  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// All commands of Program::functions[function]. With an observer each command is done when the
  /// observer's after() is called, and what the observer calls takes effect there.
  virtual Status run(uint32_t function, CommandObserver* observer) = 0;
  /// Copies to the arena; `from` must stay as it is until the call was waited for.
  virtual Status upload(int64_t offset, std::span<const char> from) = 0;
  /// Copies from the arena; `into` is filled when the call was waited for.
  virtual Status download(int64_t offset, std::span<char> into) = 0;
  virtual Status fill(int64_t offset, int64_t bytes, char value) = 0;
  /// Stands for every call made so far.
  virtual Event record() = 0;
  /// Returns when the calls of `event` are done. An error of one of them comes out here at the
  /// latest, and at every later call; that of a command has the command's label. RunFailed unless
  /// the device knows better.
  virtual Status wait(Event event) = 0;
  /// Zeros in host memory that is good to copy from and to. Lives as long as the device.
  /// Environment when there is not so much memory.
  virtual Result<std::span<char>> hostBuffer(int64_t bytes) = 0;
  /// The bytes themselves, if the host can reach them, else nothing. They are what the calls that
  /// were waited for left there.
  virtual std::span<char> window(int64_t offset, int64_t bytes) = 0;
  /// Null where there is a window, which any thread may read. The errors of the device.
  virtual Result<std::unique_ptr<StateReader>> reader() { return std::unique_ptr<StateReader>(); }

  /// `gate` is called once, before the next change of a state, and takes the place of one that was
  /// not: whoever still reads states beside the runs is waited for in it. run() passes it before
  /// the first command of phase update, which verify() knows to be the first that may change one.
  void setGate(std::function<void()> gate) { gate_ = std::move(gate); }
  bool hasGate() const { return gate_ != nullptr; }
  /// For who changes a state otherwise.
  void passGate() {
    if (gate_)
      std::exchange(gate_, nullptr)();
  }

  /// Of the arena, with the padding behind it that calls may touch: Program::arenaBytes or more.
  int64_t bytes() const { return bytes_; }

protected:
  explicit Device(int64_t bytes) : bytes_(bytes) {}

private:
  int64_t bytes_;
  std::function<void()> gate_;
};

} // namespace titan
