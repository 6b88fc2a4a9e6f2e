#include "compiler/Codegen/kernel/ApplyPatterns.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace titan::codegen {

LogicalResult applyPatterns(Operation* op, const FrozenRewritePatternSet& patterns) {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return applyPatternsGreedily(op, patterns, config);
}

} // namespace titan::codegen
