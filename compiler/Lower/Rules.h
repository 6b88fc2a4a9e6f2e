// Registration of the lowering rules, one function a family (compiler/Lower/rules).
#pragma once

#include "compiler/Lower/LoweringBuilder.h"
#include "mlir/IR/DialectRegistry.h"

namespace titan::ir {
struct ScatterShape;
}

namespace titan::lower {

/// Attaches LowerableOpInterface to every op that has a rule, when its dialect is loaded.
void registerLowerRules(mlir::DialectRegistry& registry);

/// The rules of a family are the overloads of `LogicalResult Rules::lower(Op, LoweringBuilder&)`,
/// static, of a struct in its file, attached together:
///   attachRules<Rules, ir::AddOp, ir::SubOp>(context);
template <typename Rules, typename Op>
struct RuleModel : ir::LowerableOpInterface::ExternalModel<RuleModel<Rules, Op>, Op> {
  mlir::LogicalResult lower(mlir::Operation* op, LoweringBuilder& lowering) const {
    return Rules::lower(llvm::cast<Op>(op), lowering);
  }
};

template <typename Rules, typename... Ops> void attachRules(mlir::MLIRContext* context) {
  (Ops::template attachInterface<RuleModel<Rules, Ops>>(*context), ...);
}

/// Is the rule of `op` one LoweringBuilder::elementwise of all its operands?
bool isElementwise(mlir::Operation* op);

/// Adds each row of `terms` to that of a table of `type` which its index names, as
/// #kernel.embedding_grad does: to the rows of `acc`, or to zero where it is null. Nothing is added
/// to row `padding`; -1: to every row.
mlir::Value addRows(LoweringBuilder& lowering, mlir::Value terms, mlir::Value indices,
                    mlir::Value acc, mlir::RankedTensorType type, const ir::ScatterShape& shape,
                    int64_t padding = -1);

void attachElementwiseRules(mlir::MLIRContext* context);
void attachConversionRules(mlir::MLIRContext* context);
void attachShapeRules(mlir::MLIRContext* context);
void attachContractionRules(mlir::MLIRContext* context);
void attachConvolutionRules(mlir::MLIRContext* context);
void attachPoolRules(mlir::MLIRContext* context);
void attachRecurrenceRules(mlir::MLIRContext* context);
void attachReductionRules(mlir::MLIRContext* context);
void attachExactSumRules(mlir::MLIRContext* context);
void attachNormalizationRules(mlir::MLIRContext* context);
void attachIndexingRules(mlir::MLIRContext* context);
void attachScatterRules(mlir::MLIRContext* context);
void attachRotaryRules(mlir::MLIRContext* context);
void attachAttentionRules(mlir::MLIRContext* context);
void attachLossRules(mlir::MLIRContext* context);
void attachRandomRules(mlir::MLIRContext* context);
void attachOptimizerRules(mlir::MLIRContext* context);
void attachStateRules(mlir::MLIRContext* context);
void attachRankRules(mlir::MLIRContext* context);

} // namespace titan::lower
