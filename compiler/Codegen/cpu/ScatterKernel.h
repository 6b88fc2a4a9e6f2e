// The routine #kernel.scatter: updates of the elements that indices name.
#pragma once

#include "compiler/Codegen/cpu/FusedKernel.h"

namespace titan::codegen {

/// Emits `void name(ptr operands, ptr scalars, i64 begin, i64 end)` at the builder's insertion
/// point, for units [begin, end). Operands are indices, updates, result. A unit owns its columns of
/// all entries and walks the rows in order, so that who computes it decides nothing.
void emitScatterKernel(mlir::OpBuilder& builder, kernel::CallOp op, llvm::StringRef name);

} // namespace titan::codegen
