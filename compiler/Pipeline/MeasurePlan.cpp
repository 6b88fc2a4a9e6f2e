#include "compiler/Pipeline/MeasurePlan.h"

#include "compiler/Lower/Passes.h"
#include "compiler/Memory/Passes.h"
#include "compiler/Memory/Plan.h"
#include "compiler/Pipeline/Pipeline.h"
#include "compiler/Support/RecipeAttribute.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace titan {

FailureOr<int64_t> measurePlan(ModuleOp module, ArrayRef<std::string> disabled) {
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  if (failed(writeBytecodeToFile(module, stream)))
    return module.emitError("cannot be copied for its plan to be measured");

  MLIRContext context(module.getContext()->getDialectRegistry(), MLIRContext::Threading::DISABLED);
  if (module.getContext()->isMultithreadingEnabled())
    context.setThreadPool(module.getContext()->getThreadPool());
  skipPasses(context, disabled);
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic& diagnostic) {
    if (message.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      message = diagnostic.str();
    return success();
  });
  auto fail = [&] { return module.emitError("has no plan: ") << message; };
  OwningOpRef<ModuleOp> copy =
      parseSourceString<ModuleOp>(bytes, ParserConfig(&context, /*verifyAfterParse=*/false));
  if (!copy)
    return fail();
  FailureOr<Recipe> recipe = getRecipe(*copy);
  if (failed(recipe))
    return fail();
  recipe->memory.limit = 0;
  setRecipe(*copy, *recipe);
  PassManager passes(&context);
  passes.enableVerifier(false);
  addLowerPasses(passes);
  addPlanPasses(passes);
  if (failed(passes.run(*copy)))
    return fail();
  FailureOr<memory::ModulePlan> plan = memory::readPlan(*copy);
  if (failed(plan))
    return fail();
  return plan->deviceBytes();
}

} // namespace titan
