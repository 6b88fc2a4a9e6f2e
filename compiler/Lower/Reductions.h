// Sums for rules that need more than one op's worth.
#pragma once

#include "compiler/Lower/LoweringBuilder.h"

namespace titan::lower {

/// The combination of `operand` along `dims`, in the order of titan.reduce (README.md), in its
/// type, which is f32, f64 or an integer.
mlir::Value buildReduction(LoweringBuilder& lowering, ir::ReduceKind kind, mlir::Value operand,
                           llvm::ArrayRef<int64_t> dims);

} // namespace titan::lower
