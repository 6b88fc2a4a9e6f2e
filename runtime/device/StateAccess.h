// The way to the bytes of a program on any device: job, checkpoint and metrics see this, never the
// arena. Where the device has a window, nothing is copied that need not be.
//
//   StateAccess access(program, device);
//   TITAN_TRY(access.write(*access.binding("step", "x"), 0, batch));
//   Scalar loss = TITAN_TRY(access.scalar(*access.binding("step", "loss")));
//   TITAN_TRY(access.run(0, nullptr));
//   double value = loss.read();
#pragma once

#include "runtime/device/Bytes.h"
#include "runtime/device/Device.h"
#include "runtime/device/Part.h"
#include "runtime/device/Scalar.h"

#include <array>
#include <optional>
#include <string_view>

namespace titan {

/// A tensor in the arena: this rank's part of a state with its padding, or a binding.
struct Place {
  int64_t offset = 0, bytes = 0;
  DType dtype = DType::F32;
  Shape shape = {};
};

Place placeOf(const State& state);
Place placeOf(const Binding& binding);

class StateAccess {
public:
  /// Where the device has no window, places are staged in pieces of that size, as many at once as
  /// the ring holds, which is no larger than all states together.
  static constexpr int64_t pieceBytes = int64_t{1} << 20, ringBytes = int64_t{64} << 20;

  /// What the ring takes of host memory where the device has no window.
  static int64_t ringBytesOf(const Program& program);

  /// Both outlive the object, which its sources, sinks and scalars point to. `rank` is the device's
  /// in the program's mesh.
  StateAccess(const Program& program, Device& device, int64_t rank = 0);
  StateAccess(const StateAccess&) = delete;
  StateAccess& operator=(const StateAccess&) = delete;

  const Program& program() const { return *program_; }
  /// Nothing when there is none of that kind, profile (Ema only) and name.
  std::optional<Place> state(StateKind kind, std::string_view profile, std::string_view name) const;
  std::optional<Place> binding(std::string_view function, std::string_view name) const;

  /// Of this rank in the program's mesh.
  std::span<const int64_t> coordinates() const { return coordinates_; }
  /// How its place holds the state, which is the program's.
  Part part(const State& state) const { return partOf(state, program_->mesh, coordinates_); }
  /// What this rank has of the state, without padding.
  ByteSource valid(const State& state);

  /// Bytes of `place` from `first` on; complete on return. Internal: they leave the place. The
  /// errors of the device.
  Status read(const Place& place, int64_t first, std::span<char> into);
  Status write(const Place& place, int64_t first, std::span<const char> from);
  Status fill(const Place& place, char value);

  /// All bytes of `place` to memory of hostBuffer(), by the device: a CPU has all threads copy.
  /// Complete on return; the errors of the device.
  Status copy(const Place& place, std::span<char> into);

  /// Device::reader.
  Result<std::unique_ptr<StateReader>> reader() { return device_->reader(); }
  /// Returns when all calls so far are done.
  Status settle() { return device_->wait(device_->record()); }

  ByteSource source(const Place& place);
  ByteSink sink(const Place& place);

  /// A handle on a place of one element. Internal: more than one, or the page of scalars is full.
  Result<Scalar> scalar(const Place& place);

  /// Device::setGate. The gate is passed by runs, by the calls that write to a state's place, and
  /// by sink() of one.
  void setGate(std::function<void()> gate) { device_->setGate(std::move(gate)); }

  /// Host memory that is good to copy batches from: Device::hostBuffer.
  Result<std::span<char>> hostBuffer(int64_t bytes) { return device_->hostBuffer(bytes); }

  /// Runs a function to its end, with the scalars that were written before; afterwards scalars read
  /// what it left.
  Status run(uint32_t function, CommandObserver* observer);
  /// Begins a run. At most ScalarPage::mostRuns are begun and not finished.
  Status begin(uint32_t function, CommandObserver* observer);
  /// Waits for the first run that is begun and not finished: scalars read what it left.
  Status finish();
  /// Is a run that was begun still going on when begin() returns? Not where there is a window.
  bool runsBehind() const { return device_->window(0, 1).empty(); }

private:
  friend class ByteSource;
  friend class ByteSink;
  friend class Transfer;

  /// Passes the gate where states lie in `place`.
  void passGate(const Place& place);
  /// Offsets are of the arena; complete on return.
  Status download(int64_t offset, std::span<char> into);
  Status upload(int64_t offset, std::span<const char> from);
  Result<Transfer> begin(int64_t offset, std::span<const char> from);
  Status wait(const Transfer& transfer) { return device_->wait({transfer.event_}); }
  /// Pieces of a place of `bytes` bytes at `offset` of the arena in order, by the ring: the next
  /// ones travel while one is looked at.
  Status forEachPiece(int64_t offset, int64_t bytes,
                      const std::function<Status(std::span<const char>)>& see);
  Status fillPieces(int64_t offset, int64_t bytes,
                    const std::function<Status(int64_t first, std::span<char>)>& make);
  /// Whole pieces, made when they are first needed.
  Status makeRing();
  size_t ringPieces() const { return ring_.size() / static_cast<size_t>(pieceBytes); }
  /// Where piece `piece` of a place of `bytes` bytes is staged.
  std::span<char> staged(int64_t piece, int64_t bytes) const;

  const Program* program_;
  Device* device_;
  std::vector<int64_t> coordinates_;
  ScalarPage scalars_;
  uint64_t begun_ = 0, finished_ = 0;                    ///< runs
  std::array<Device::Event, ScalarPage::mostRuns> ends_; ///< of run r at r % mostRuns
  std::span<char> ring_;
};

} // namespace titan
