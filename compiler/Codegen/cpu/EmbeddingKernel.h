// The routines #kernel.embedding and #kernel.embedding_grad: rows of a table by index.
#pragma once

#include "compiler/Codegen/cpu/FusedKernel.h"

namespace titan::codegen {

/// Emits `void name(ptr operands, ptr scalars, i64 begin, i64 end)` at the builder's insertion
/// point: rows [begin, end) of the result are copied. Operands are table, indices, result.
void emitEmbeddingKernel(mlir::OpBuilder& builder, kernel::CallOp op, llvm::StringRef name);

/// The same for the gradient: operands are the gradient of the rows, indices, gradient of the
/// table. Units are runs of columns, and each walks all indices in order, so that the order of a
/// sum does not depend on who computes it.
void emitEmbeddingGradKernel(mlir::OpBuilder& builder, kernel::CallOp op, llvm::StringRef name);

} // namespace titan::codegen
