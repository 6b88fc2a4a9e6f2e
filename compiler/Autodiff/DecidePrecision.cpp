#include "compiler/Autodiff/Passes.h"
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
    if (recipe->precision.compute != "f32") {
      module.emitError() << "precision.compute = \"" << recipe->precision.compute
                         << "\" is not available: use \"f32\"";
      return signalPassFailure();
    }
    // In f32 the model's own types are the decision; a narrower one would be a rounding that nobody
    // asked for.
    WalkResult walk = module.walk([](Operation* op) {
      for (Type type : op->getResultTypes()) {
        Type element = getElementTypeOrSelf(type);
        if (!element.isBF16() && !element.isF16())
          continue;
        InFlightDiagnostic error = op->emitError()
                                   << "'" << op->getName() << "' computes in " << element;
        if (std::string path = pathString(op); !path.empty())
          error << " (" << path << ")";
        error << ", precision.compute is \"f32\": export the model in float32";
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
} // namespace titan
