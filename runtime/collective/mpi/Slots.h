// Memory for parts on their way: one slot a rank to send, and one to receive.
#pragma once

#include "runtime/collective/Lines.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace titan {

/// A slot is a head and lines. Slots of one message lie `bytes` apart, as MPI lays parts out.
class Slots {
public:
  /// Says which collective a message is of, and how long its rank has waited so far.
  struct alignas(Lines::lineBytes) Head {
    uint64_t ticket = 0;
    uint64_t collective = 0;
    int64_t waited = 0; ///< nanoseconds
  };
  static_assert(sizeof(Head) == Lines::lineBytes);

  /// Bytes of all slots of one direction, unless there are so many ranks that each has the least.
  static constexpr int64_t mostBytes = int64_t{4} << 20;
  static constexpr int64_t mostLines = (int64_t{1} << 20) / Lines::lineBytes;
  static constexpr int64_t leastLines = 64;

  /// Lines of a slot in a group of `ranks`.
  static int64_t lines(int64_t ranks) {
    return std::clamp(mostBytes / Lines::lineBytes / ranks, leastLines, mostLines);
  }
  static int64_t bytesOf(int64_t lines) { return (1 + lines) * Lines::lineBytes; }

  explicit Slots(int64_t ranks)
      : bytes_(static_cast<size_t>(ranks * bytesOf(lines(ranks)))),
        data_(static_cast<char*>(std::aligned_alloc(Lines::lineBytes, bytes_))) {}

  char* data() const { return data_.get(); }
  size_t size() const { return bytes_; }
  /// Of a message of slots with `lines` lines each.
  Head& head(int64_t slot, int64_t lines) const {
    return *reinterpret_cast<Head*>(data() + slot * bytesOf(lines));
  }
  char* linesOf(int64_t slot, int64_t lines) const {
    return data() + slot * bytesOf(lines) + sizeof(Head);
  }

private:
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };
  size_t bytes_;
  std::unique_ptr<char, Free> data_;
};

} // namespace titan
