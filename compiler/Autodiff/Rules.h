// Derivative rules as data: one entry an op, one file a family in rules/.
#pragma once

#include "dialects/Titan/AdjointBuilder.h"

namespace titan::autodiff {

/// Attaches DifferentiableOpInterface to the ops of titan that have a derivative.
void registerDerivativeRules(mlir::DialectRegistry& registry);

/// DifferentiableOpInterface of `OpTy` by `rule(AdjointBuilder&, OpTy)`, which sets the adjoints
/// that are asked for. A rule that cannot give one of them returns a LogicalResult.
template <typename OpTy, auto rule>
struct RuleModel : ir::DifferentiableOpInterface::ExternalModel<RuleModel<OpTy, rule>, OpTy> {
  llvm::LogicalResult buildAdjoints(mlir::Operation* op, ir::AdjointBuilder& adjoints) const {
    using Result = decltype(rule(adjoints, llvm::cast<OpTy>(op)));
    if constexpr (!std::is_void_v<Result>)
      return rule(adjoints, llvm::cast<OpTy>(op));
    else
      rule(adjoints, llvm::cast<OpTy>(op));
    return llvm::success();
  }
};

template <typename OpTy, auto rule> void attachRule(mlir::MLIRContext* context) {
  OpTy::template attachInterface<RuleModel<OpTy, rule>>(*context);
}

/// For an op with one operand and one result: `rule(b, op, dy)` is the operand's adjoint.
template <typename OpTy, auto rule> void attachUnaryRule(mlir::MLIRContext* context) {
  attachRule<OpTy, [](ir::AdjointBuilder& b, OpTy op) {
    if (b.needs(0))
      b.set(0, rule(b, op, b.result()));
  }>(context);
}

/// An op whose derivative is zero wherever it has one.
template <typename OpTy> void attachZeroRule(mlir::MLIRContext* context) {
  attachRule<OpTy, [](ir::AdjointBuilder&, OpTy) {}>(context);
}

void attachElementwiseRules(mlir::MLIRContext* context);
void attachShapeRules(mlir::MLIRContext* context);
void attachContractionRules(mlir::MLIRContext* context);
void attachConvolutionRules(mlir::MLIRContext* context);
void attachPoolRules(mlir::MLIRContext* context);
void attachReductionRules(mlir::MLIRContext* context);
void attachNormalizationRules(mlir::MLIRContext* context);
void attachIndexingRules(mlir::MLIRContext* context);
void attachScatterRules(mlir::MLIRContext* context);
void attachAttentionRules(mlir::MLIRContext* context);
void attachRandomRules(mlir::MLIRContext* context);
void attachRecurrenceRules(mlir::MLIRContext* context);
void attachLossRules(mlir::MLIRContext* context);

} // namespace titan::autodiff
