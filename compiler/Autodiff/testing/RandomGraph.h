// Random functions of smooth titan ops, for tests: values with several uses, dead ops, layouts of
// every kind.
#pragma once

#include "dialects/Titan/Titan.h"

namespace titan::autodiff::testing {

/// A module with @f: three tensor<4x4xf32> -> one, of about twenty ops chosen by counter-based
/// draws of `seed`.
mlir::OwningOpRef<mlir::ModuleOp> createRandomGraph(mlir::MLIRContext& context, uint64_t seed);

} // namespace titan::autodiff::testing
