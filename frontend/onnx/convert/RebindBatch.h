// An export with fixed shapes has the batch of its example inputs in every shape. It is recognised
// by following it from the inputs through the ops' factors (Shardable), and replaced.
#pragma once

#include "frontend/onnx/convert/InputDims.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace titan::frontend {

/// On the multiplication by 1 / count that makes a mean of a sum: another batch changes the count.
/// Removed at the end of the import.
inline constexpr llvm::StringLiteral kMeanAttribute = "frontend.mean";

/// Changes the batch of `function` from `inputs.bakedBatch` to `batch`: types of inputs, results
/// and all values between. Error: an op that mixes samples or holds a value of the exported batch;
/// it names the node and how to export.
Status rebindBatch(mlir::func::FuncOp function, const BoundInputs& inputs, int64_t batch);

} // namespace titan::frontend
