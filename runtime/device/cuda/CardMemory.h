// The arena of a program on a card: one allocation, and one for each range that lies in the host's
// memory, pinned and mapped. Or, to see who leaves his place, one for each part of it.
#pragma once

#include "runtime/device/cuda/Owned.h"
#include "runtime/program/Program.h"

#include <algorithm>
#include <vector>

namespace titan::cuda {

/// What an allocation of `bytes` takes, so that each begins at a line of 256.
inline int64_t wholeLines(int64_t bytes) { return (bytes / 256 + 1) * 256; }

class CardMemory {
public:
  /// 1: an allocation for each part of the arena.
  static constexpr const char* splitVariable = "TITAN_CUDA_SPLIT_ARENA";

  CardMemory() = default;
  /// Of an arena of `bytes` bytes. `split`: an allocation for each state, constant and binding
  /// (those that overlap, or that an operand goes across, share
  /// one) and for each temporary. `program` outlives the object.
  CardMemory(const Program& program, int64_t bytes, bool split);

  /// Of the card's allocations.
  int64_t cardBytes() const { return bytesOf(/*onHost=*/false); }
  /// Of the host's.
  int64_t hostBytes() const { return bytesOf(/*onHost=*/true); }
  /// Allocates what is the card's. The answer of the first call that failed, or of the last one.
  Answer allocateCard(const Driver& driver);
  /// Likewise what is the host's.
  Answer allocateHost(const Driver& driver);

  /// Calls see(address, first, count) with bytes [first, first + count) of the `bytes` bytes of the
  /// arena from `offset` on, allocation by allocation. Ends with the first error. Usage: the arena
  /// is split, and they are of no state, constant or binding: temporaries share offsets.
  template <typename See> Status forEachRange(int64_t offset, int64_t bytes, See&& see) const {
    int64_t first = 0;
    for (const Part& part : kept_)
      if (const int64_t at = offset + first; first < bytes && part.holds(at, 1)) {
        const int64_t count = std::min(bytes - first, part.offset + part.bytes - at);
        TITAN_TRY(see(part.origin() + static_cast<uint64_t>(at), first, count));
        first += count;
      }
    return first == bytes ? Status() : noPlace(offset, bytes);
  }
  /// What is added to an offset of the arena to address an operand of a command of
  /// Program::functions[function]. Where a temporary takes the place of another one in the command,
  /// what is read is the old one.
  CUdeviceptr originOf(size_t function, uint32_t command, const Operand& operand) const;

private:
  struct Part {
    int64_t offset = 0, bytes = 0; ///< in the arena
    bool isOnHost = false;
    OwnedMemory memory;         ///< of the card, or
    OwnedHostMemory hostMemory; ///< of the host
    CUdeviceptr address = 0;    ///< of either

    bool holds(int64_t at, int64_t count) const {
      return offset <= at && at + count <= offset + bytes;
    }
    CUdeviceptr origin() const { return address - static_cast<uint64_t>(offset); }
  };

  static Error noPlace(int64_t offset, int64_t bytes);
  /// The temporary that an operand lies in, or null.
  const Part* temporaryOf(size_t function, uint32_t command, const Operand& operand) const;
  int64_t bytesOf(bool onHost) const;
  /// One part for the card between those of the host.
  void addWhole(int64_t bytes);
  void addKept();

  const Program* program_ = nullptr;
  std::vector<Part> kept_;                     ///< in rising order; the arena unless it is split
  std::vector<std::vector<Part>> temporaries_; ///< as Function::temporaries; empty where whole
};

} // namespace titan::cuda
