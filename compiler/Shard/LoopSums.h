// What the loops over microbatches sum.
#pragma once

#include "dialects/Accum/Accum.h"
#include "dialects/Titan/Titan.h"

namespace titan {

/// The phase of a sum over ranks: one of backward's terms is backward's own; what else is summed,
/// the update needs. With `isTree` floats that loops sum are backward's, too: the loss is summed
/// over ranks where gradients are, since each axis is a level of one tree.
ir::Phase phaseOfSum(mlir::Value value, bool isTree);

/// Where what `use` makes is read behind all loops, if it only goes into sums of theirs; else `use`
/// itself.
llvm::SmallVector<mlir::OpOperand*> readersBehindLoops(mlir::OpOperand& use);

} // namespace titan
