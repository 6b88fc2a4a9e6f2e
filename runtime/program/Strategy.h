// What each strategy of mesh.strategy shards along which axis of the mesh: one row a strategy and
// axis.
#pragma once

#include <span>
#include <string_view>

namespace titan {

/// What of a tensor the ranks that differ on one axis only have.
enum class Share {
  Whole, ///< each all of it
  Part,  ///< each its own part
};

/// A strategy on one axis. A row is all that an axis or a strategy takes: what follows from it,
/// collectives above all, the rules of ops say.
///
/// A gradient has no column for what ranks add up: on each axis that divides the microbatches it is
/// a term of their sum, until they exchange it.
struct StrategyRow {
  std::string_view strategy; ///< as in mesh.strategy
  std::string_view axis;     ///< as in mesh.axes
  Share parameters;          ///< trained or frozen, and their averages
  Share gradients;           ///< once they are summed: what the update takes
  Share slots;               ///< of the optimizer
  bool needsRanks;           ///< a mesh with one rank on the axis is refused
};

/// All rows. zero1 and zero2 are equal here: they differ in what mesh.sync = "auto" means. zero3 is
/// another name of fsdp; hsdp is fsdp that demands several ranks on both axes.
std::span<const StrategyRow> strategyRows();

/// The row of `strategy` on `axis`; nullptr where it has none: all is whole there.
const StrategyRow* findStrategyRow(std::string_view strategy, std::string_view axis);

} // namespace titan
