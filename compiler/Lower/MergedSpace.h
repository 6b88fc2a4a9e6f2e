// One iteration space for a kernel and the kernel that reads its results.
#pragma once

#include "dialects/Kernel/Kernel.h"

namespace titan::lower {

/// One iteration space for two kernels: each kernel's dimensions as affine functions of the merged
/// ones.
struct MergedSpace {
  llvm::SmallVector<int64_t> extents;
  mlir::AffineMap toProducer, toConsumer;
};

/// The spaces that serve `consumer` reading results of `producer`, directly or in another shape,
/// best first: the consumer's own (a chunked column reduction keeps its chunks), then the
/// producer's (a row kernel takes in what is done to its rows' results), then the consumer's with
/// dimensions cut where the other's begin and end ([12, ...] chunks of 16 rows and [3, 64, ...]
/// rows meet in [3, 4, 16, ...]). Empty, with `why` set, if there is none.
llvm::SmallVector<MergedSpace> findMergedSpaces(kernel::FusedOp producer, kernel::FusedOp consumer,
                                                std::string& why);

/// The space in which `first` and `second` read `value`, an operand of both, at the same element;
/// none where there is no such space. What else they read, perhaps of each other, may lie anywhere.
std::optional<MergedSpace> findSharedSpace(kernel::FusedOp first, kernel::FusedOp second,
                                           mlir::Value value);

/// Does `consumer` find each result of `producer` that it reads at the very point that writes the
/// element? (So it does if it reads none.) Otherwise the two can only run one after the other.
bool readsAtSamePoint(const MergedSpace& space, kernel::FusedOp producer, kernel::FusedOp consumer);

/// Is every point of the producer's space visited once, over the dimensions that `toProducer` uses?
/// Then a merged kernel can also write the producer's results.
bool visitsWholeSpace(const MergedSpace& space, kernel::FusedOp producer);

} // namespace titan::lower
