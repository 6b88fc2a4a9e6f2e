// Merging of two fused kernels into one, once a space for both is found. FuseKernels decides what
// should be merged.
#pragma once

#include "compiler/Lower/MergedSpace.h"
#include "mlir/IR/PatternMatch.h"

namespace titan::lower {

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
