// Collectives of neighbours as one.
#pragma once

#include "dialects/Titan/Titan.h"

namespace titan::schedule {

/// Cuts the collectives of `function`, whole ones, into buckets of at most `bytes` of whole
/// tensors, or of one that is larger. 0: each tensor by itself.
void bucketCollectives(mlir::func::FuncOp function, int64_t bytes, bool withRemarks);

} // namespace titan::schedule
