#include "compiler/Autodiff/Passes.h"
#include "compiler/Autodiff/RoundContractions.h"
#include "compiler/Support/RecipeAttribute.h"

using namespace mlir;
using namespace titan::ir;

namespace titan {

#define GEN_PASS_DEF_DECIDEPRECISION
#include "compiler/Autodiff/Passes.h.inc"

namespace {

struct DecidePrecisionPass : impl::DecidePrecisionBase<DecidePrecisionPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Recipe> recipe = getRecipe(module);
    if (failed(recipe))
      return signalPassFailure();
    // The model's own types are f32, whatever contractions read: a narrower one would be a rounding
    // that nobody asked for, and no master copy of a weight.
    WalkResult walk = module.walk([](Operation* op) {
      for (Type type : op->getResultTypes()) {
        Type element = getElementTypeOrSelf(type);
        if (!element.isBF16() && !element.isF16())
          continue;
        InFlightDiagnostic error = op->emitError()
                                   << "'" << op->getName() << "' computes in " << element;
        if (std::string path = pathString(op); !path.empty())
          error << " (" << path << ")";
        error << ", and precision.compute narrows f32 only: export the model in float32";
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    if (recipe->precision.compute == "bf16")
      for (auto function : module.getOps<func::FuncOp>())
        roundContractions(function);
  }
};

} // namespace
} // namespace titan
