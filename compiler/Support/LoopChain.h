// The loops over the microbatches of a step: each inside of the one before, until *schedule* takes
// the last iteration out of some.
#pragma once

#include "dialects/Accum/Accum.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace titan {

/// On a loop, a unit: one iteration more stands behind it in its block, as ops, and loops if its
/// body holds some (titan-schedule-peel-last-microbatch).
inline constexpr llvm::StringLiteral peeledTag = "accum.peeled";
bool isPeeled(accum::LoopOp loop);

/// The iterations of `loop` and of the loops around it: how often its body runs in a step, before
/// any iteration is peeled.
int64_t iterationsOf(accum::LoopOp loop);

/// Makes of `loop` one around another that has its body and runs `count` iterations each time: a
/// divisor of the loop's own count. Batches and stacks are reshaped in front of and behind the
/// outer one, the index of an iteration is still its number among all. Sums are the same:
/// accumulators of the inner loop start as what those of the outer one have so far. Returns the
/// inner loop.
accum::LoopOp splitLoop(accum::LoopOp loop, int64_t count);

/// Is it some rows of an input, or of what an iteration takes of one, in whatever shape, where there
/// are several ranks? These are read where the input lies, so that a peeled iteration has the
/// kernels of its loop. On tensors of both dialects.
bool isPartOfBatch(ir::SliceOp slice);

/// Checks that the loops of `step` are one chain, not deeper than the command table can nest, whose
/// counts multiply to `microbatches`. With iterations peeled there are several chains, and these
/// add up. A step of one microbatch may have none at all where `mayBeInlined`.
llvm::LogicalResult verifyLoopChain(mlir::func::FuncOp step, int64_t microbatches,
                                    bool mayBeInlined);

} // namespace titan
