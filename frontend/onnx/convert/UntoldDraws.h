// Random numbers in a file that has its batch baked in: are they one for each sample?
#pragma once

#include "dialects/Titan/Titan.h"

namespace titan::frontend {

/// A source of random numbers with as many rows as there are samples in the exported `batch`, of
/// which no reader tells whether they belong to these: they are summed before they meet a value
/// that `isOfSamples`. Null: there is none.
ir::RandomOp findUntoldDraw(mlir::func::FuncOp function, int64_t batch,
                            llvm::function_ref<bool(mlir::Value)> isOfSamples);

} // namespace titan::frontend
