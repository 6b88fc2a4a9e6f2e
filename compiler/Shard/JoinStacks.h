// The rows that ranks have stacked, as those of all microbatches.
#pragma once

#include "compiler/Shard/FunctionPlacements.h"

namespace titan {

/// Gathers what the loops of `function` stack, in front of the first op that reads some of it: each
/// rank has a row for each of its own microbatches, and what reads them takes those of the whole
/// job, in the order of the microbatches. All stacks are one exchange for each loop that axes
/// divide, with a remark.
void joinStacks(mlir::func::FuncOp function, FunctionPlacements& placements);

} // namespace titan
