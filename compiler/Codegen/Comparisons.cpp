#include "compiler/Codegen/Comparisons.h"

#include "compiler/Codegen/CommandTable.h"
#include "compiler/Codegen/kernel/ErrorBound.h"
#include "compiler/Support/RecipeAttribute.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace titan::codegen {
namespace {

ComparedOperand describe(Value buffer) {
  auto type = cast<ShapedType>(buffer.getType());
  return {dtypeOf(type.getElementType()).value_or(DType::U8), shapeOf(type), Tolerance::Equal, 0};
}

/// Of each term of a product, for both sides; and of both factors of a term, where a library may
/// read them as tf32.
constexpr double productRounding = 0x1p-23, tf32Rounding = 0x1p-9;

double productTolerance(kernel::CallOp op, kernel::GemmAttr gemm) {
  const double sum = productRounding * static_cast<double>(gemm.getK());
  FailureOr<Recipe> recipe = getRecipe(op->getParentOfType<ModuleOp>());
  const bool isF32 = cast<ShapedType>(op.getIns()[0].getType()).getElementType().isF32();
  const bool mayUseTf32 = isF32 && succeeded(recipe) && recipe->precision.matmul == "tf32";
  return mayUseTf32 ? sum + tf32Rounding : sum;
}

/// Attention is judged by the size of its results alone: a bound that follows the data would be
/// another attention. Roundings of scores, probabilities and their adjoints to `element` count.
double attentionTolerance(Type element) { return element.isBF16() ? 0x1p-5 : scaleTolerance; }

/// How out number `out` is judged.
void judge(kernel::CallOp op, unsigned out, ComparedOperand& operand) {
  llvm::TypeSwitch<Attribute>(op.getRoutine())
      .Case([&](kernel::GemmAttr gemm) {
        operand.tolerance = Tolerance::Magnitude;
        operand.factor = productTolerance(op, gemm);
      })
      .Case<kernel::EmbeddingAttr, kernel::ScatterAttr, kernel::TopKAttr>(
          [&](auto) { operand.tolerance = Tolerance::Equal; })
      .Case([&](kernel::EmbeddingGradAttr routine) {
        operand.tolerance = out == 0 ? Tolerance::Magnitude : Tolerance::Any;
        operand.factor = sumTolerance(routine.getAllRows());
      })
      .Case([&](kernel::AttentionAttr attention) {
        kernel::AttentionGradientAttr gradient = attention.getGradient();
        const bool isWorkspace = gradient && gradient.getWorkspace() == static_cast<int64_t>(out);
        operand.tolerance = isWorkspace ? Tolerance::Any : Tolerance::Scale;
        operand.factor = attentionTolerance(attention.getElement());
      })
      .Default([&](Attribute) { operand.tolerance = Tolerance::Any; });
}

} // namespace

Comparison compareRoutine(kernel::CallOp op, ArrayRef<unsigned> numbers) {
  Comparison comparison;
  const size_t ins = op.getIns().size();
  for (unsigned number : numbers) {
    const bool isOut = number >= ins;
    ComparedOperand& operand = comparison.operands.emplace_back(
        describe(isOut ? op.getOuts()[number - ins] : op.getIns()[number]));
    if (isOut)
      judge(op, static_cast<unsigned>(number - ins), operand);
  }
  return comparison;
}

Comparison compareFused(kernel::FusedOp op, ArrayRef<unsigned> bounded) {
  Comparison comparison;
  for (ValueRange buffers : {ValueRange(op.getIns()), ValueRange(op.getOuts())})
    for (Value buffer : buffers)
      comparison.operands.push_back(describe(buffer));
  for (unsigned out : bounded)
    comparison.operands[op.getIns().size() + out].tolerance = Tolerance::Bounded;
  return comparison;
}

} // namespace titan::codegen
