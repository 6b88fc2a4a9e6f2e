#include "compiler/Shard/Passes.h"
#include "compiler/Support/RecipeAttribute.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_VERIFYSHARD
#include "compiler/Shard/Passes.h.inc"

namespace {

LogicalResult verifyStateShapes(ModuleOp module, func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto symbol = function.getArgAttrOfType<FlatSymbolRefAttr>(i, ir::tag::state);
    if (!symbol)
      continue;
    auto state = module.lookupSymbol<ir::StateOp>(symbol.getAttr());
    if (!state)
      return function.emitError("argument ")
             << i << " is state " << symbol << ", which the module does not declare";
    if (state.getType() != function.getArgument(i).getType())
      return function.emitError("takes state ")
             << symbol << " as " << function.getArgument(i).getType() << ", it is "
             << state.getType();
  }
  return success();
}

struct VerifyShard : impl::VerifyShardBase<VerifyShard> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Recipe> recipe = getRecipe(module);
    if (failed(recipe))
      return signalPassFailure();
    for (const MeshAxis& axis : recipe->mesh.axes)
      if (axis.ranks != 1) {
        module.emitError("mesh axis '")
            << axis.name << "' has " << axis.ranks << " ranks, the program is that of one";
        return signalPassFailure();
      }
    for (auto function : module.getOps<func::FuncOp>())
      if (failed(verifyStateShapes(module, function)))
        return signalPassFailure();
  }
};

} // namespace

} // namespace titan
