// What the loops over microbatches sum.
#pragma once

#include "dialects/Accum/Accum.h"
#include "dialects/Titan/Titan.h"

namespace titan {

/// The op that makes `value`, or what a loop adds up to it; null for an argument.
mlir::Operation* sourceOf(mlir::Value value);

/// The phase of a sum over ranks: one of backward's terms is backward's own; what else is summed,
/// the update needs.
ir::Phase phaseOfSum(mlir::Value value);

/// Where what `use` makes is read behind all loops, if it only goes into sums of theirs; else `use`
/// itself.
llvm::SmallVector<mlir::OpOperand*> readersBehindLoops(mlir::OpOperand& use);

} // namespace titan
