// Collectives in the stages behind *shard*: from one op to its halves.
#pragma once

#include "dialects/Dist/Dist.h"

namespace titan {

/// Is `op` a collective, whole or one of its halves?
bool isCollective(mlir::Operation* op);

/// Replaces a whole collective by its start and its wait, next to each other, on buffers that are
/// empty before.
void splitCollective(mlir::Operation* collective);

/// Splits every whole collective below `root`.
void splitCollectives(mlir::Operation* root);

/// Does a collective start, or is one waited for, behind `first` and before `second`, which stands
/// behind it, perhaps in a loop? Collectives in loops between the two count.
bool isCollectiveBetween(mlir::Operation* first, mlir::Operation* second);

} // namespace titan
