// The part of verify() that is about collectives.
#pragma once

#include "runtime/program/Program.h"

namespace titan {

/// Follows the commands of a verified mesh, staging region and table. Errors of commands do not say
/// which: the caller does.
class CollectiveChecker {
public:
  explicit CollectiveChecker(const Program& program);

  /// Groups that exist, pieces that can be cut and summed.
  Status checkTable() const;
  /// The next command of a function, with the trips of the repeats around it, outermost first; its
  /// operands lie in the arena.
  Status command(const Command& command, std::span<const int64_t> trips);
  /// What was started was waited for.
  Status endFunction() const;
  /// Every collective was started somewhere.
  Status endProgram() const;

private:
  /// A place in the arena with all values that it takes.
  struct Extent {
    Affine address;
    int64_t low = 0, high = 0; ///< [low, high) holds the bytes of every iteration and rank
    int64_t bytes = 0;
    bool meets(const Extent& other) const;
  };
  /// A collective between its start and its wait.
  struct Open {
    uint32_t collective = 0;
    const Command* start = nullptr;
    size_t depth = 0; ///< repeats around it
    std::vector<Extent> ins, outs;
  };

  Status checkCollective(const Collective& collective) const;
  Extent extentOf(const Operand& operand, std::span<const int64_t> trips) const;
  /// Nobody writes to the sources of what is under way, nor touches its results.
  Status checkAccess(const Operand& operand, const Extent& extent) const;
  Status start(const Command& command, std::span<const int64_t> trips);
  Status wait(const Command& command, size_t depth);
  Status checkOperands(const Command& command, const Open& open) const;

  const Program& program_;
  std::vector<int64_t> ranks_; ///< of the mesh's axes
  std::vector<bool> started_;  ///< by collective
  std::vector<Open> open_;
};

} // namespace titan
