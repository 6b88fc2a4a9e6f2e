// One iteration space for a kernel and the kernel that reads its results.
#pragma once

#include "dialects/Kernel/Kernel.h"

namespace titan::lower {

/// An affine expression as digits: constant + sum(stride * dimension).
struct Linear {
  int64_t constant = 0;
  llvm::SmallVector<std::pair<int64_t, unsigned>> terms; ///< (stride, dimension), by falling stride
};
/// None where `expr`, over `rank` dimensions, is not linear.
std::optional<Linear> toLinear(mlir::AffineExpr expr, unsigned rank);

/// One iteration space for two kernels: each kernel's dimensions as affine functions of the merged
/// ones.
struct MergedSpace {
  llvm::SmallVector<int64_t> extents;
  mlir::AffineMap toProducer, toConsumer;
};

/// The spaces that serve `consumer` reading results of `producer`, best first: the consumer's own
/// (a chunked column reduction keeps its chunks), then the producer's (a row kernel takes in what
/// is done to its rows' results). Empty, with `why` set, if there is none.
llvm::SmallVector<MergedSpace> findMergedSpaces(kernel::FusedOp producer, kernel::FusedOp consumer,
                                                std::string& why);

/// Is every point of the producer's space visited once, over the dimensions that `toProducer` uses?
/// Then a merged kernel can also write the producer's results.
bool visitsWholeSpace(const MergedSpace& space, kernel::FusedOp producer);

} // namespace titan::lower
