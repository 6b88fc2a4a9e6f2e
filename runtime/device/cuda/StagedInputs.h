// Batches on their way to a card: they travel by a stream of their own to memory of their own, and
// are copied to their place in the arena when the commands' stream comes to it.
#pragma once

#include "runtime/device/cuda/CardMemory.h"
#include "runtime/device/cuda/Owned.h"
#include "runtime/program/Program.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace titan::cuda {

class StagedInputs {
public:
  /// Of the arena.
  struct Range {
    int64_t offset = 0, bytes = 0;

    bool holds(int64_t at, int64_t count) const {
      return offset <= at && at + count <= offset + bytes;
    }
  };
  /// An input of a function.
  struct Input {
    Range range;
    int64_t staging = 0; ///< its offset in the staging memory
    OwnedEvent arrived;  ///< in the staging memory
    OwnedEvent taken;    ///< from there
  };

  /// Of the card's memory for the inputs of all functions, once.
  static int64_t bytesFor(const Program& program);

  StagedInputs() = default;
  /// In the current context. Without memory yet. `what` goes on when a call fails.
  static Result<StagedInputs> open(const Driver& driver, const Program& program,
                                   const std::string& what);
  /// The memory, bytes() of it.
  Answer allocate();
  int64_t bytes() const { return bytes_; }

  /// The input that all these bytes of the arena lie in, or null.
  const Input* find(int64_t offset, int64_t bytes) const;
  /// Queues the way of `from` to `offset` of the arena, which is in `input`. `check` says what an
  /// answer means.
  Status upload(const Input& input, int64_t offset, std::span<const char> from,
                const CardMemory& arena, CUstream commands,
                const std::function<Status(Answer)>& check) const;
  /// Waits until nothing is on its way.
  void finish() const;

private:
  const Driver* driver_ = nullptr;
  std::vector<Input> inputs_;
  int64_t bytes_ = 0;
  OwnedMemory memory_;
  OwnedStream stream_;
};

} // namespace titan::cuda
