// Collectives under way while others compute.
#pragma once

#include "dialects/Dist/Dist.h"

namespace titan::schedule {

/// Starts each gather of parameters of `function`, halved, before the wait of the one `count`
/// gathers earlier in its block; the first ones together. 0: changes nothing.
void prefetchGathers(mlir::func::FuncOp function, int64_t count, bool withRemarks);

/// Moves the waits of sums, and of gathers of what the update makes, to where something reads the
/// result that cannot wait, but not behind the start of the `count`-th later on of their kind and
/// axes. 0: changes nothing.
void overlapReductions(mlir::func::FuncOp function, int64_t count, bool withRemarks);

/// Says what runs beside the collective of `start`. `name`: of the pass that remarks it.
void reportOverlap(dist::StartOp start, llvm::StringRef name);

} // namespace titan::schedule
