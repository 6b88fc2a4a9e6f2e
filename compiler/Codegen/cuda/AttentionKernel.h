// Attention and its gradient as launches of one card kernel each.
//
// Forward: a block has 64 queries of one head and goes along its keys, 64 at a time, with the
// running maximum and sum of each query. Backward, scores are computed again: one launch goes along
// the queries of a block of keys, for the adjoints of key and value, another along the keys of a
// block of queries. Sums stay in registers, for 256 columns at most: wider heads take more
// launches.
#pragma once

#include "compiler/Codegen/cuda/KernelModule.h"
#include "dialects/Kernel/Kernel.h"

namespace titan::codegen::cuda {

/// Adds the entry points `symbol`_0, `symbol`_1, ... in the order of their launches. Their operands
/// are ins and outs, then the scalars of the call and the stream of its dropout. Fails with a
/// diagnostic on the call for types and blocks that have no code here.
mlir::LogicalResult emitAttentionKernel(KernelModule& kernels, kernel::CallOp call,
                                        llvm::StringRef symbol);

} // namespace titan::codegen::cuda
