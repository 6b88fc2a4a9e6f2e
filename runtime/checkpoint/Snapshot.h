// A copy of the state in host memory, that a save reads while the run goes on.
#pragma once

#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/device/StateAccess.h"

#include <optional>
#include <span>
#include <vector>

namespace titan::checkpoint {

class Snapshot {
public:
  /// Of all that tensors() of `access` gives, without its memory. Nothing where this rank has a
  /// part of a state only. `access` outlives the snapshot.
  static std::optional<Snapshot> of(StateAccess& access);

  /// Host memory that it takes.
  int64_t bytes() const { return region_.bytes; }
  /// Reserves and touches it. Environment: there is not so much.
  Status reserve();

  /// Copies the state as it is now, in one sweep. The errors of the device.
  Status take() { return access_->copy(region_, copy_); }
  /// What was taken; the bytes stay as they are until the next take().
  const std::vector<TensorView>& tensors() const { return tensors_; }

private:
  explicit Snapshot(StateAccess& access) : access_(&access) {}

  StateAccess* access_;
  Place region_; ///< of the arena, from the first byte of a state to the last
  std::vector<TensorView> tensors_;
  std::vector<int64_t> offsets_; ///< of the tensors, in `region_`
  std::span<char> copy_;
};

} // namespace titan::checkpoint
