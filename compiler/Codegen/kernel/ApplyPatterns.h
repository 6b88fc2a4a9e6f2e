#pragma once

#include "mlir/Rewrite/FrozenRewritePatternSet.h"

namespace titan::codegen {

/// Rewrites the ops within `op` until no pattern matches. Regions stay: erasing and merging blocks
/// is not the business of passes on bodies.
mlir::LogicalResult applyPatterns(mlir::Operation* op,
                                  const mlir::FrozenRewritePatternSet& patterns);

} // namespace titan::codegen
