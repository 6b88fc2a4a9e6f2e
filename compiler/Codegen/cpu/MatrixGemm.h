// The generated product of bf16 on a target's matrix unit: any shape, transposition and epilogue.
//
// A rectangle of C is cut into blocks whose part of B is packed once and stays in the second-level
// cache; for each 32 rows of A, packed in turn, a strip of C runs along it, panel by panel of k.
// Each element of C is one chain over k in steps of 32, from +0 or from C where the product
// accumulates: c = c + (e + o), as MatrixUnit.h says. The chain goes on through C, or through f32
// sums where C is narrower, from one panel to the next: bits depend on the shape and the unit
// alone, not on the grid, the range of units or the panels.
#pragma once

#include "compiler/Codegen/cpu/FusedKernel.h"

namespace titan::codegen {

/// Does this product run on the target's matrix unit? A question of its shape and types.
bool usesMatrixUnit(kernel::CallOp call, const VectorShape& shape);

/// Fills `function`, which has KernelFunction's signature, at the builder's insertion point.
void emitMatrixGemm(mlir::OpBuilder& builder, kernel::CallOp call, const VectorShape& shape,
                    mlir::func::FuncOp function);

} // namespace titan::codegen
