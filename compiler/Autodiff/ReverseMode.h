// Reverse-mode differentiation of one block by the rules of its ops.
#pragma once

#include "mlir/IR/Builders.h"

namespace titan::autodiff {

/// The gradients of the scalar `loss` with respect to `wanted`, built before the terminator of the
/// block that computes `loss`. Both may come from outside of the block. Only what lies on a path
/// from `wanted` to `loss` is differentiated: a gradient that nobody asks for is not built.
/// Adjoints of a value with several uses are added in reverse order of the uses.
///
/// The entry of a value that no path of floating-point values leads from to the loss is null; one
/// that is reached only through derivatives that are zero everywhere is a constant of zeros. An op
/// on a path without a derivative rule is an error on that op.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> buildGradients(mlir::Value loss,
                                                               llvm::ArrayRef<mlir::Value> wanted);

} // namespace titan::autodiff
