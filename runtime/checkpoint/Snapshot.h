// A copy of the state in host memory, that a save reads while the run goes on.
#pragma once

#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/device/StateAccess.h"
#include "runtime/host/ThreadPool.h"

#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace titan::checkpoint {

class Snapshot {
public:
  /// Of all that tensors() of `access` gives. Nothing where the host does not reach the state, or a
  /// state lies in several pieces. `access` and `pool` outlive the snapshot.
  static std::optional<Snapshot> of(StateAccess& access, ThreadPool& pool);
  /// Reserves and touches its memory. Environment: there is not so much.
  Status reserve();

  /// Host memory that it takes.
  int64_t bytes() const { return static_cast<int64_t>(state_.size()); }

  /// Copies the state as it is now, on all threads of the pool.
  void take();
  /// What was taken; the bytes stay as they are until the next take().
  const std::vector<TensorView>& tensors() const { return tensors_; }

private:
  Snapshot() = default;

  StateAccess* access_ = nullptr;
  ThreadPool* pool_ = nullptr;
  std::span<const char> state_; ///< from the first byte of a state to the last
  std::span<char> copy_;        ///< of `state_`
  std::vector<TensorView> tensors_;
};

} // namespace titan::checkpoint
