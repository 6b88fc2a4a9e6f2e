// Merging of two fused kernels into one: what can be done, and doing it. FuseKernels decides what
// should be.
#pragma once

#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/PatternMatch.h"

namespace titan::lower {

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

/// Builds the merged kernel before `consumer` and returns it: its results are the consumer's, then
/// those of the producer that `kept` lists. Fails, leaving everything as it was, with `why` set,
/// where the result fits no class or a reduction would change its order.
mlir::FailureOr<kernel::FusedOp> buildMerged(mlir::RewriterBase& rewriter, kernel::FusedOp producer,
                                             kernel::FusedOp consumer, const MergedSpace& space,
                                             llvm::ArrayRef<unsigned> kept, std::string& why);

/// Rebuilds `op` without the results that nobody reads; erases it if none is left. Returns the op
/// that is there now, or null.
kernel::FusedOp dropUnusedResults(mlir::RewriterBase& rewriter, kernel::FusedOp op);

} // namespace titan::lower
