// The addresses and scalars of a function's commands, as the code that computes them reads them:
// eight bytes each, resolved once but for those that depend on repeat counters. Every walk of the
// table takes them from here.
#pragma once

#include "runtime/device/Walk.h"

#include <functional>
#include <span>
#include <vector>

namespace titan {

/// An operand or scalar that has to be computed again in each iteration.
struct Varying {
  std::span<const Affine::Term> terms; ///< repeat counters only
  int64_t* slot;                       ///< where the code reads it: an address or a scalar
  int64_t origin;                      ///< its value where all counters are 0

  void update(const RepeatCounters& counters) const { *slot = origin + offsetOf(terms, counters); }
};

class CommandSlots {
public:
  struct Command {
    std::span<int64_t> operands, scalars; ///< one behind the other
    std::span<const Varying> varying;
  };

  /// What is added to the offset of a command's operand to address it: the arena's address.
  using Origin = std::function<int64_t(uint32_t command, const Operand& operand)>;

  /// For an arena at that address, on the rank at `coordinates`, one an axis of the mesh. What it
  /// hands out points into this object.
  CommandSlots(const Function& function, std::span<const int64_t> coordinates, int64_t arena);
  /// The same where the arena is in several pieces.
  CommandSlots(const Function& function, std::span<const int64_t> coordinates,
               const Origin& origin);
  CommandSlots(const CommandSlots&) = delete;
  CommandSlots(CommandSlots&&) = default;

  /// As Function::commands.
  std::span<const Command> commands() const { return commands_; }

private:
  std::vector<Command> commands_;
  std::vector<int64_t> slots_;
  std::vector<Varying> varying_;
  std::vector<Affine::Term> terms_; ///< of varying_
};

} // namespace titan
