// What fusion may cost: how often a kernel's work is repeated, and whether that is worth a load.
#pragma once

#include "compiler/Lower/MergedSpace.h"

namespace titan::lower {

int64_t pointsOf(llvm::ArrayRef<int64_t> extents);

/// What follows from what a kernel computes: its space, maps, body and the types of its operands.
struct KernelFacts {
  /// Evaluating it once more per element costs less than a load: a few adds and selects, no
  /// reduction, no division, no function, no random number.
  bool isCheap;
  /// It rounds a vector. Readers with rows read it rounded, rather than rounding it for each of
  /// them; and a product takes up a bias that is rounded already.
  bool roundsVector;
  int64_t rowLength;        ///< elements that its longest reduction along rows combines, or 0
  int64_t columnReductions; ///< their number
  size_t streams;           ///< `streamsInto`
  int64_t largestRead;      ///< bytes of an operand
  int64_t read, written;    ///< bytes
};
/// Of `op`, which has `body` or is to have it.
KernelFacts factsOf(kernel::FusedOp op, mlir::Block& body);

/// Cheap, and its readers lose nothing by computing it themselves: it reads half of what it writes
/// at most (broadcasts, fills, coordinates), or as much, but then all of its readers must be
/// kernels (a bias added to a product that is used forwards and backwards).
bool isDuplicable(kernel::FusedOp op, const KernelFacts& facts);

/// Does `op` only repeat single elements, for kernels that can read those themselves? What makes
/// the elements stays apart from it: merged with that, the copies would be written.
bool repeatsScalars(kernel::FusedOp op, const KernelFacts& facts);

/// Does `op` have reductions, or do all of its readers?
bool isForReductions(kernel::FusedOp op);

/// Does `op` repeat elements along short innermost rows, for a space many times larger? Evaluated
/// there it would cut the reader's rows, which are longer in memory: a statistic of each group of
/// channels, for each channel.
bool repeatsAlongShortRows(const MergedSpace& space, kernel::FusedOp op);

/// Elements of the sums down columns that one kernel of two would hold while it goes down rows, a
/// reduction of which either has; 0 where nothing is reduced along rows. A short row counts as one
/// of 1024 elements: however few, its columns are those of one thread, with all their sums.
int64_t columnSumsOf(const KernelFacts& first, const KernelFacts& second);

/// Operands that a kernel reads along its space; one that is the same element for all points is
/// none.
size_t streamsInto(kernel::FusedOp op);

/// Does the merged space repeat the producer's points in a way that codegen cannot hoist out of the
/// inner loop? Hoistable are repeats over the innermost dimensions only.
bool repeatsWork(const MergedSpace& space, kernel::FusedOp producer);

} // namespace titan::lower
