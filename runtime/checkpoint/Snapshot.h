// What a save reads while the run goes on: copies in host memory of the tensors that it reads last,
// and the state itself for those that it reads first, which must be done before the state changes.
//
// Where there is a window the copies are made when take() returns. Elsewhere the device makes them
// beside the next run, so take() returns at once, the save waits for them, and so does whatever
// changes the state:
//
//   snapshot.take();
//   access.setGate([&] { snapshot.hold(); });
//   saver->begin(plan, {.step = step, .beforeRead = [&] { return snapshot.wait(); }}, retention);
#pragma once

#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/device/StateAccess.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace titan::checkpoint {

class Snapshot {
public:
  /// Of all that tensors() of `access` gives. Nothing where this rank has a part of a state only.
  /// `access` outlives the snapshot.
  static std::optional<Snapshot> of(StateAccess& access);

  /// What copies of all tensors take at most.
  int64_t bytes() const;
  /// Reserves and touches memory for the copies: of the last tensors in the order of a save, as
  /// many as `most` bytes hold. Environment: there is not so much.
  Status reserve(int64_t most);
  /// What was reserved.
  int64_t stagedBytes() const { return static_cast<int64_t>(copy_.size()); }
  /// Are there tensors without a copy?
  bool isPartial() const { return std::ranges::any_of(tensors_, &TensorView::isBorrowed); }

  /// Must the next change of a state wait for copies, or for the save to read what has none?
  bool needsGate() const { return reader_ || isPartial(); }

  /// Copies the state as it is now, or begins to. No save reads the copies of before. The errors of
  /// the device.
  Status take();
  /// Returns when the copies are made. Any thread may call it.
  Status wait() { return reader_ ? reader_->wait() : Status(); }
  /// Changes of the state from here on take effect when the copies are made: StateReader::hold. The
  /// save has read what has none.
  Status hold() { return reader_ ? reader_->hold() : Status(); }
  /// The bytes of copies are as they were taken until the next take(). All others are borrowed
  /// (TensorView::isBorrowed).
  const std::vector<TensorView>& tensors() const { return tensors_; }

private:
  /// Bytes of the arena that lie together, and where their copy is in `copy_`.
  struct Sweep {
    Place place;
    int64_t offset = 0;
  };

  explicit Snapshot(StateAccess& access) : access_(&access) {}
  /// The state itself, for the thread that saves.
  ByteSource borrowed(const Place& place) const;

  StateAccess* access_;
  std::unique_ptr<StateReader> reader_; ///< null where there is a window
  std::span<char> room_;                ///< for a piece of what it reads
  std::vector<TensorView> tensors_;
  std::vector<Place> places_; ///< of the tensors
  std::vector<Sweep> sweeps_;
  std::span<char> copy_;
};

} // namespace titan::checkpoint
