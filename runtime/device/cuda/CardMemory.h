// The arena of a program on a card: one allocation, or, to see who leaves his place, one for each
// part of it.
#pragma once

#include "runtime/device/cuda/Owned.h"
#include "runtime/program/Program.h"

#include <optional>
#include <vector>

namespace titan::cuda {

class CardMemory {
public:
  CardMemory() = default;
  /// Of an arena of `bytes` bytes. `split`: an allocation for each state, constant and binding
  /// (those that overlap, or that an operand goes across, share
  /// one) and for each temporary. `program` outlives the object.
  CardMemory(const Program& program, int64_t bytes, bool split);

  /// Of all allocations.
  int64_t bytes() const;
  /// Allocates all. The answer of the first call that failed, or of the last one.
  Answer allocate(const Driver& driver);

  /// Bytes [offset, offset + bytes) of the arena. Where it is split they lie in one state, constant
  /// or binding, else there is no such place: temporaries share offsets.
  std::optional<CUdeviceptr> at(int64_t offset, int64_t bytes) const;
  /// What is added to an offset of the arena to address an operand of a command of
  /// Program::functions[function]. Where a temporary takes the place of another one in the command,
  /// what is read is the old one.
  CUdeviceptr originOf(size_t function, uint32_t command, const Operand& operand) const;

private:
  struct Part {
    int64_t offset = 0, bytes = 0; ///< in the arena
    OwnedMemory memory;

    bool holds(int64_t at, int64_t count) const {
      return offset <= at && at + count <= offset + bytes;
    }
    CUdeviceptr origin() const { return memory.get() - static_cast<uint64_t>(offset); }
  };

  /// The temporary that an operand lies in, or null.
  const Part* temporaryOf(size_t function, uint32_t command, const Operand& operand) const;
  void addKept();

  const Program* program_ = nullptr;
  std::vector<Part> kept_;                     ///< in rising order; the arena where it is whole
  std::vector<std::vector<Part>> temporaries_; ///< as Function::temporaries; empty where whole
};

} // namespace titan::cuda
