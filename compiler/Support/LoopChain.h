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

/// The op that makes `value`, or what loops add up to it; null for an argument.
mlir::Operation* sourceOf(mlir::Value value);

/// The first op of `block` that one of `uses` is of, or is in; null without uses.
mlir::Operation* firstReader(llvm::ArrayRef<mlir::OpOperand*> uses, mlir::Block* block);
/// The same of all uses of `value` in its own block.
mlir::Operation* firstReader(mlir::Value value);

/// Makes of `loop` loops that run `counts` iterations, each inside of the one before: the counts
/// multiply to the loop's own. Batches are reshaped in front of the outermost one, stacks in front
/// of the first op that reads them, the index of an iteration is still its number among all. Sums
/// are the same: accumulators of an inner loop start as what those around it have so far, and what
/// a tree sums is a term of the tree around it. Returns the loops, the outermost first.
llvm::SmallVector<accum::LoopOp> nestLoop(accum::LoopOp loop, llvm::ArrayRef<int64_t> counts);

/// Makes `loop`, which yields terms, add them to accumulators that start at zero, one after the
/// other. The zeros stand where `outside` builds.
void makeRunning(accum::LoopOp loop, mlir::OpBuilder& outside);

/// Makes what the running loop around `inner` sums a sum of the sums of `inner`, each of which
/// begins at zero. The zeros stand where `outside` builds.
void sumFromZero(accum::LoopOp inner, mlir::OpBuilder& outside);

/// Is it some rows of an input, or of what an iteration takes of one, in whatever shape, where
/// there are several ranks? These are read where the input lies, so that a peeled iteration has the
/// kernels of its loop. On tensors of both dialects.
bool isPartOfBatch(ir::SliceOp slice);

/// Checks that the loops of `step` are one chain, not deeper than the command table can nest, whose
/// counts multiply to `microbatches`. With iterations peeled there are several chains, and these
/// add up. A step of one microbatch may have none at all where `mayBeInlined`.
llvm::LogicalResult verifyLoopChain(mlir::func::FuncOp step, int64_t microbatches,
                                    bool mayBeInlined);

} // namespace titan
