// The routine #kernel.recurrence: all steps of a recurrent layer for a block of samples.
#pragma once

#include "compiler/Codegen/cpu/FusedKernel.h"

namespace titan::codegen {

/// Emits `void name(ptr operands, ptr scalars, i64 begin, i64 end)` at the builder's insertion
/// point. A unit walks all steps of its samples without waiting for another one. A step is a
/// product of the last states with the weights, which are read in panels from the caches, and one
/// pass over the gates. Each sum of a product is one chain of multiply-adds along its depth, so
/// neither the number of samples nor that of columns decides bits. Fails with a diagnostic on the
/// op where panels do not fit the target's vectors, or a step not on the stack.
mlir::LogicalResult emitRecurrenceKernel(mlir::OpBuilder& builder, kernel::CallOp call,
                                         llvm::StringRef name, const VectorShape& shape);

} // namespace titan::codegen
