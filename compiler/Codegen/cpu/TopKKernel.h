// The routine #kernel.top_k: rows in order.
#pragma once

#include "compiler/Codegen/cpu/FusedKernel.h"

namespace titan::codegen {

/// Emits `void name(ptr operands, ptr scalars, i64 begin, i64 end)` at the builder's insertion
/// point, for rows [begin, end). Operands are the tensor, values, indices. The elements' numbers
/// are sorted by merging runs of 1, 2, 4, ...: it keeps the order of equal elements.
void emitTopKKernel(mlir::OpBuilder& builder, kernel::CallOp op, llvm::StringRef name);

} // namespace titan::codegen
