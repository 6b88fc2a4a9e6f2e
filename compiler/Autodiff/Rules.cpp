#include "compiler/Autodiff/Rules.h"

using namespace mlir;

namespace titan::autodiff {

void registerDerivativeRules(DialectRegistry& registry) {
  registry.addExtension(+[](MLIRContext* context, ir::TitanDialect*) {
    attachElementwiseRules(context);
    attachShapeRules(context);
    attachContractionRules(context);
    attachConvolutionRules(context);
    attachPoolRules(context);
    attachReductionRules(context);
    attachNormalizationRules(context);
    attachIndexingRules(context);
    attachScatterRules(context);
    attachAttentionRules(context);
    attachRandomRules(context);
    attachRecurrenceRules(context);
    attachLossRules(context);
  });
}

} // namespace titan::autodiff
