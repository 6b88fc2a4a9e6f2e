// Small builders of scf loops.
#pragma once

#include "mlir/IR/Builders.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace titan::codegen {

using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value induction,
                                                                   mlir::ValueRange carried)>;

/// for (i = low; i < high; i += step), carrying values. A loop known to run once is its body.
llvm::SmallVector<mlir::Value> emitLoop(mlir::OpBuilder& builder, mlir::Location loc,
                                        mlir::Value low, mlir::Value high, int64_t step,
                                        mlir::ValueRange carried, LoopBody body);

/// carried = condition ? then() : carried. A condition known to hold is its body.
llvm::SmallVector<mlir::Value> emitIf(mlir::OpBuilder& builder, mlir::Location loc,
                                      mlir::Value condition, mlir::ValueRange carried,
                                      llvm::function_ref<llvm::SmallVector<mlir::Value>()> then);

} // namespace titan::codegen
