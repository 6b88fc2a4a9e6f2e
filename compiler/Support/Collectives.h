// Collectives in the stages behind *shard*: from one op to its halves.
#pragma once

#include "dialects/Dist/Dist.h"
#include "mlir/IR/PatternMatch.h"

namespace titan {

/// Is `op` a collective, whole or one of its halves?
bool isCollective(mlir::Operation* op);

/// Does `op`, whole or a start, gather what layers read, so that it stands before its readers? All
/// other collectives stand behind what makes their sources.
bool gathersForReaders(mlir::Operation* op);

/// Replaces a whole collective by its start and its wait, next to each other, on buffers that are
/// empty before.
void splitCollective(mlir::Operation* collective);

/// Splits every whole collective below `root`.
void splitCollectives(mlir::Operation* root);

/// Replaces a start and its wait by the whole collective, in the place of the wait.
mlir::Operation* joinHalves(dist::StartOp start);

/// Joins all halves below `root`.
void joinAllHalves(mlir::Operation* root);

/// Replaces a whole collective of several tensors by one for each of them, in order; `path` has a
/// name for each of them, or all get all of it.
llvm::SmallVector<mlir::Operation*> separate(mlir::RewriterBase& rewriter, mlir::Operation* bucket);

/// Replaces whole collectives that differ in their tensors only by one of all tensors, in their
/// order, in the place of `place`, one of them. It has all paths.
mlir::Operation* joinInBucket(llvm::ArrayRef<mlir::Operation*> collectives, mlir::Operation* place);

/// Does a collective start, or is one waited for, behind `first` and before `second`, which stands
/// behind it, perhaps in a loop? Collectives in loops between the two count.
bool isCollectiveBetween(mlir::Operation* first, mlir::Operation* second);

} // namespace titan
