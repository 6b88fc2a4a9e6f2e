// Arguments for running a function that nobody has data for.
#pragma once

#include "compiler/Interpreter/Interpreter.h"

namespace titan::interpreter {

struct RandomOptions {
  uint64_t seed = 0;
  /// Integer tensors of rank >= 1 (targets, token ids) are in [0, integerBound). 0: of as many
  /// classes or rows as they choose from, or of two where nothing says.
  int64_t integerBound = 0;
};

/// One tensor for each argument of `function`, by counter-based draws of (seed, argument). Floats
/// are standard normal, but positive for states that hold squares (a name ending in `exp_avg_sq`)
/// and small and positive for scalars; booleans are fair coins; i64 scalars (counters, controls)
/// are 1.
llvm::SmallVector<Tensor> randomArguments(mlir::func::FuncOp function,
                                          const RandomOptions& options = {});
/// The same in other types than those of the arguments: of the job where these are a rank's.
llvm::SmallVector<Tensor> randomArguments(mlir::func::FuncOp function,
                                          llvm::ArrayRef<mlir::RankedTensorType> types,
                                          const RandomOptions& options = {});
/// A tensor of `type` with such draws of its own stream.
Tensor randomTensor(mlir::ShapedType type, uint64_t stream, const RandomOptions& options = {});

} // namespace titan::interpreter
