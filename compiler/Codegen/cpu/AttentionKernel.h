// The attention routine: forward and backward by blocks of queries and keys, so that no [T, S]
// matrix is stored (Dao et al., arXiv:2205.14135).
//
// A forward unit is a block of queries of one head. It walks over blocks of keys with the running
// maximum and sum of each query (Milakov and Gimelshein, arXiv:1805.02867). A backward unit is one
// key head: its query heads one after the other, their blocks of queries outside, blocks of keys
// inside; probabilities are computed again from the log-sum-exp. Neither depends on how units are
// divided among threads, nor on where views lie.
//
// Scalars: those of the call (the microbatch), then the stream of the dropout, so that the layers
// of a model share one kernel.
#pragma once

#include "compiler/Codegen/cpu/FusedKernel.h"

namespace titan::codegen {

/// Emits the function `name` for one configuration at the builder's insertion point (a module),
/// and, once per module, the private functions that attention kernels share. Emits an error on the
/// call where its blocks do not suit the target: rows that are no whole vectors, or too large for
/// the stack.
mlir::LogicalResult emitAttentionKernel(mlir::OpBuilder& builder, kernel::CallOp call,
                                        llvm::StringRef name, const VectorShape& shape);

} // namespace titan::codegen
