#include "compiler/Lower/Rules.h"

#include "dialects/Dist/Dist.h"

using namespace mlir;

namespace titan::lower {

void registerLowerRules(DialectRegistry& registry) {
  registry.addExtension(+[](MLIRContext* context, ir::TitanDialect*) {
    attachElementwiseRules(context);
    attachConversionRules(context);
    attachShapeRules(context);
    attachContractionRules(context);
    attachConvolutionRules(context);
    attachPoolRules(context);
    attachReductionRules(context);
    attachExactSumRules(context);
    attachNormalizationRules(context);
    attachIndexingRules(context);
    attachScatterRules(context);
    attachRotaryRules(context);
    attachAttentionRules(context);
    attachRecurrenceRules(context);
    attachLossRules(context);
    attachRandomRules(context);
    attachOptimizerRules(context);
    attachStateRules(context);
  });
  registry.addExtension(
      +[](MLIRContext* context, dist::DistDialect*) { attachRankRules(context); });
}

} // namespace titan::lower
