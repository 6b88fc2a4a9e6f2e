#include "compiler/Shard/Passes.h"
#include "compiler/Support/LocalType.h"
#include "compiler/Support/LoopChain.h"
#include "compiler/Support/RecipeAttribute.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_VERIFYSHARD
#include "compiler/Shard/Passes.h.inc"

namespace {

/// Does `function` take and return each state in the type that a rank holds?
LogicalResult verifyStateTypes(func::FuncOp function, ArrayRef<MeshAxis> mesh) {
  auto module = function->getParentOfType<ModuleOp>();
  auto check = [&](Attribute tag, Type type, StringRef verb) -> LogicalResult {
    auto symbol = dyn_cast_if_present<FlatSymbolRefAttr>(tag);
    if (!symbol)
      return success();
    // The dialect's tags name states that the module declares.
    auto state = module.lookupSymbol<ir::StateOp>(symbol.getAttr());
    FailureOr<RankedTensorType> local = localTypeOf(state, mesh);
    if (failed(local) || type == *local)
      return LogicalResult(local);
    return function.emitError() << verb << " state " << symbol << " as " << type << ", a rank has "
                                << *local << " of it";
  };
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    if (failed(check(function.getArgAttr(i, ir::tag::state), type, "takes")))
      return failure();
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    if (failed(check(function.getResultAttr(i, ir::tag::state), type, "returns")))
      return failure();
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
      if (failed(verifyStateTypes(function, recipe->mesh.axes)))
        return signalPassFailure();
    auto step = module.lookupSymbol<func::FuncOp>(ir::function::step);
    if (step && failed(verifyLoopChain(step, recipe->localMicrobatches(), /*mayBeInlined=*/true)))
      signalPassFailure();
  }
};

} // namespace

} // namespace titan
