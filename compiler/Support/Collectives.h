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

/// Replaces a reduce_scatter of several tensors by one for each of them, in order; `path` has a
/// name for each of them, or all get all of it.
llvm::SmallVector<dist::ReduceScatterOp> separate(dist::ReduceScatterOp bucket);

/// Does a collective start, or is one waited for, behind `first` and before `second`, which stands
/// behind it, perhaps in a loop? Collectives in loops between the two count.
bool isCollectiveBetween(mlir::Operation* first, mlir::Operation* second);

} // namespace titan
