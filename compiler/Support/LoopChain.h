// The loops over the microbatches of a step: each inside of the one before.
#pragma once

#include "dialects/Accum/Accum.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace titan {

/// The iterations of `loop` and of the loops around it: how often its body runs in a step.
int64_t iterationsOf(accum::LoopOp loop);

/// Makes of `loop` one around another that has its body and runs `count` iterations each time: a
/// divisor of the loop's own count. Batches and stacks are reshaped in front of and behind the
/// outer one, the index of an iteration is still its number among all. Sums are the same:
/// accumulators of the inner loop start as what those of the outer one have so far. Returns the
/// inner loop.
accum::LoopOp splitLoop(accum::LoopOp loop, int64_t count);

/// Checks that the loops of `step` are one chain, not deeper than the command table can nest, whose
/// counts multiply to `microbatches`. A step of one microbatch may have none at all where
/// `mayBeInlined`.
llvm::LogicalResult verifyLoopChain(mlir::func::FuncOp step, int64_t microbatches,
                                    bool mayBeInlined);

} // namespace titan
