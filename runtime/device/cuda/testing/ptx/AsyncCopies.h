// cp.async of one warp: copies from global to shared memory that are on their way.
//
// Each lane has groups of its own: a copy belongs to the group that the lane commits next. A copy
// comes when a wait of its lane says so: the source is read then, and not before. Until then nobody
// may touch the bytes it goes to; then its lane may, and other threads behind a barrier.
#pragma once

#include "runtime/device/cuda/testing/ptx/SharedMemory.h"

#include <array>

namespace titan::ptx {

class AsyncCopies {
public:
  /// One instruction.
  struct Copy {
    Mask lanes = 0; ///< whose bytes have not come
    uint32_t bytes = 0;
    std::array<uint64_t, warpSize> to;      ///< offsets in shared memory
    std::array<const char*, warpSize> from; ///< on the host
    std::array<uint8_t, warpSize> sizes;    ///< bytes that are read; the others become 0
    std::array<uint32_t, warpSize> groups;
  };

  /// For the next block.
  void reset();
  /// A new copy of no group and no lane.
  Copy& add();
  /// Notes the group of each lane of the newest copy.
  void enqueue(Copy& copy, Mask lanes);
  void commit(Mask lanes);
  /// Brings what lies before the newest `left` groups of each lane, or all (allCopies).
  /// The lanes are threads `thread`, `thread` + 1, ...
  void wait(Mask lanes, int64_t left, uint32_t thread, SharedMemory& memory);
  /// Of these lanes, those that wait for copies.
  Mask waiting(Mask lanes) const;

private:
  /// The lanes of `lanes` whose part of `copy` lies before their newest `left` groups.
  Mask dueOf(const Copy& copy, Mask lanes, int64_t left) const;

  std::vector<Copy> copies_; ///< the first `count_` are on their way, oldest first
  size_t count_ = 0;
  std::array<uint32_t, warpSize> committed_{};
  bool together_ = true; ///< all lanes have committed the same number of groups
};

} // namespace titan::ptx
