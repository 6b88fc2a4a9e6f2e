#include "compiler/Codegen/cpu/Sweep.h"

#include "compiler/Codegen/cpu/ReductionOrder.h"

namespace titan::codegen {

std::optional<unsigned> sweepDim(const LoopNest& nest) {
  std::optional<unsigned> row;
  for (const Reduction& reduction : nest.reductions)
    if (reduction.combines() && !contains(reduction.over, nest.rank() - 1))
      row = innermost(reduction.over);
  if (!row || nest.extents[*row] > columnChunk)
    return std::nullopt;
  // A row is the innermost dimension, or all that row reductions combine.
  std::optional<unsigned> block = nest.blockDim();
  DimSet columns = block ? bit(*block) : nest.allDims() & ~nest.parallelDims() & ~bit(*row);
  for (const Reduction& reduction : nest.reductions) {
    bool isColumn = reduction.over == bit(*row);
    if (!reduction.combines())
      continue;
    if ((!isColumn && reduction.over != columns) || (reduction.space & columns) != columns ||
        !contains(reduction.space, *row))
      return std::nullopt;
    for (const Reduction& other : nest.reductions)
      if (other.over == bit(*row) && reduction.level > other.level && nest.needs(reduction, other))
        return std::nullopt;
  }
  return row;
}

} // namespace titan::codegen
