#include "compiler/Autodiff/Passes.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/StateNames.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_FREEZEPARAMETERS
#include "compiler/Autodiff/Passes.h.inc"

namespace {

struct FreezeParametersPass : impl::FreezeParametersBase<FreezeParametersPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Recipe> recipe = getRecipe(module);
    if (failed(recipe))
      return signalPassFailure();
    for (const std::string& pattern : recipe->model.frozen) {
      bool matched = false;
      for (auto state : module.getOps<ir::StateOp>())
        if (state.getKind() == ir::StateKind::Param && matchesName(pattern, state)) {
          matched = true;
          freeze(state, pattern);
        }
      if (!matched) {
        module.emitError() << "model.frozen = '" << pattern << "' matches no parameter";
        return signalPassFailure();
      }
    }
    auto isTrainable = [](ir::StateOp state) { return state.getTrainable(); };
    if (llvm::none_of(module.getOps<ir::StateOp>(), isTrainable)) {
      module.emitError()
          << "no parameter is trainable, there is nothing to train: check model.frozen";
      signalPassFailure();
    }
  }

  void freeze(ir::StateOp state, StringRef pattern) {
    if (!state.getTrainable())
      return;
    state.setTrainable(false);
    remark::passed(state.getLoc(), remark::RemarkOpts::name("frozen").category("differentiate"))
        << (state.getName() + " is frozen by model.frozen = '" + pattern + "'").str();
  }
};

} // namespace
} // namespace titan
