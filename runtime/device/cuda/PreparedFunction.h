// A function's commands as a card runs them: launches, copies and fills with their addresses. What
// is left at run time is operands that depend on repeat counters.
#pragma once

#include "runtime/device/CommandSlots.h"
#include "runtime/device/cuda/CardMemory.h"
#include "runtime/device/cuda/LoadedImage.h"

#include <optional>
#include <span>
#include <vector>

namespace titan::cuda {

struct PreparedCommand {
  CommandKind kind = CommandKind::Kernel;
  int64_t units = 0;                        ///< Copy, Zero: bytes; Repeat: how many times
  std::span<const PreparedLaunch> launches; ///< Kernel, Library
  void** parameters = nullptr; ///< of each launch: where its operands' addresses and scalars stand
  std::span<const int64_t> operands; ///< their addresses
  std::optional<uint32_t> call; ///< Library: of Program::libraryCalls; its launches stand in for it
  std::span<const Varying> varying;
  RepeatLink link;
};

class PreparedFunction {
public:
  /// Of Program::functions[index]. `program` has been verified, has no collectives, and outlives
  /// this object, as does `image`. `memory` has been allocated.
  PreparedFunction(const Program& program, size_t index, const LoadedImage& image,
                   const CardMemory& memory);

  const Function& source() const { return *source_; }
  std::span<const PreparedCommand> commands() const { return commands_; }
  /// Launches, copies and fills of a run, repeats multiplied out.
  int64_t nodes() const { return nodes_; }
  /// firstUpdateOf().
  uint32_t firstUpdate() const { return firstUpdate_; }

private:
  const Function* source_;
  int64_t nodes_ = 0;
  uint32_t firstUpdate_;
  CommandSlots slots_;
  std::vector<void*> parameters_; ///< the address of each slot, command by command
  std::vector<PreparedCommand> commands_;
};

} // namespace titan::cuda
