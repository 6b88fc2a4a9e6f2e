// How placements pass an op: what of its operands it takes, and what of its results it gives.
#pragma once

#include "compiler/Shard/ValuePlacement.h"
#include "dialects/Accum/Accum.h"

namespace titan {

/// Is `value` a scalar, or a tensor that is made of one? Then each part of it is made alike.
bool isOneValue(mlir::Value value);

/// On one axis of the mesh. Where an operand is taken in another way than it comes, ranks must
/// exchange something.
struct AxisRule {
  llvm::SmallVector<AxisPlacement> operands, results;
};

/// The rule of `op` on an axis where its operands are `operands`. `isDivided`: it stands in the
/// body of a loop whose iterations the axis divides.
///
/// - An operand of the rank's own iteration makes the results so; all others are taken whole. But
///   in the body of a divided loop an accumulator takes any term: the sum over the iterations of
///   all ranks is then the sum of what each rank has.
/// - A part stays a part where every operand of rank >= 1 has the dimension, by the op's factors:
/// casts, transposes, elementwise ops, the optimizer's update. In phase update a sum of one tensor
/// over it is a term on each rank, with `isTree` one of integers. Else the op takes the whole, as a
///   product does.
/// - A term passes through what is linear in it: add, sub, neg, reshape, transpose, slice, pad with
/// zeros, and mul by a replicated scalar. Else the op takes the sum. With `isTree` a term of floats
///   passes only what rounds nowhere: neg, and what moves elements.
///
/// Loops and returns have no rule of their own.
AxisRule ruleOn(unsigned axis, mlir::Operation* op, llvm::ArrayRef<AxisPlacement> operands,
                bool isDivided, bool isTree);

} // namespace titan
