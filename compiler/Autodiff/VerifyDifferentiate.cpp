// What holds after *differentiate*: the list is the pass's description in Passes.td.
#include "compiler/Autodiff/Passes.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/VerifyTags.h"

using namespace mlir;
using namespace titan::ir;

namespace titan {

#define GEN_PASS_DEF_VERIFYDIFFERENTIATE
#include "compiler/Autodiff/Passes.h.inc"

namespace {

LogicalResult verifyGradients(func::FuncOp step) {
  const SymbolTable symbols(step->getParentOfType<ModuleOp>());
  unsigned count = 0;
  for (unsigned i = 0; i < step.getNumResults(); ++i) {
    StringRef name = TaggedFunction(step).resultTag(i, tag::gradient);
    if (name.empty())
      continue;
    auto state = symbols.lookup<StateOp>(name);
    if (!state || !state.getTrainable() || state.getType() != step.getResultTypes()[i])
      return step.emitError() << "gradient of @" << name << " is " << step.getResultTypes()[i]
                              << ", but there is no trainable state of that name and type";
    ++count;
  }
  if (count == 0)
    return step.emitError() << "@step returns no gradient";
  return success();
}

LogicalResult verifyStep(func::FuncOp step, const Recipe& recipe) {
  Builder builder(step.getContext());
  auto loop = getOnly<accum::LoopOp>(step);
  if (!loop || failed(verifyTags(step, /*returnsStates=*/true)))
    return failure();
  if (loop.getOrder() != accum::Order::Unordered ||
      static_cast<int64_t>(loop.getCount()) != recipe.globalMicrobatches())
    return loop.emitError() << "the loop runs " << loop.getCount() << " microbatches "
                            << accum::stringifyOrder(loop.getOrder()) << ", the recipe has "
                            << recipe.globalMicrobatches() << " unordered";
  for (unsigned i = 0; i < step.getNumArguments(); ++i)
    if (step.getArgAttr(i, tag::input)) {
      auto type = cast<RankedTensorType>(step.getArgumentTypes()[i]);
      if (type.getRank() < 2 || type.getDimSize(0) != recipe.globalMicrobatches())
        return step.emitError() << "input '" << TaggedFunction(step).argumentTag(i, tag::input)
                                << "' is " << type << ", not [" << recipe.globalMicrobatches()
                                << ", micro, ...]";
    }
  if (failed(verifyMetric(step, "loss_sum", builder.getF32Type())) ||
      failed(verifyMetric(step, "count", builder.getI64Type())))
    return failure();
  return verifyGradients(step);
}

LogicalResult verifyInference(func::FuncOp function) {
  if (failed(verifyTags(function, /*returnsStates=*/false)))
    return failure();
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (function.getResultAttr(i, tag::state))
      return function.emitError() << "@" << function.getName() << " returns the state @"
                                  << TaggedFunction(function).resultTag(i, tag::state);
  for (RandomOpInterface random : randomOps(function))
    if (!random.drawsInEvaluation())
      return random.emitError() << "dropout outside of training";
  return success();
}

struct VerifyPass : impl::VerifyDifferentiateBase<VerifyPass> {
  void runOnOperation() override {
    if (failed(verify(getOperation())))
      signalPassFailure();
  }

  LogicalResult verify(ModuleOp module) {
    FailureOr<Recipe> recipe = getRecipe(module);
    if (failed(recipe))
      return failure();
    if (module.lookupSymbol(ir::function::model))
      return module.emitError() << "@model is still there";
    for (StringRef name : {StringRef(ir::function::step), StringRef(ir::function::eval),
                           StringRef(ir::function::predict)})
      if (!getFunction(module, name))
        return failure();
    auto eval = module.lookupSymbol<func::FuncOp>(ir::function::eval);
    if (failed(verifyStep(module.lookupSymbol<func::FuncOp>(ir::function::step), *recipe)) ||
        failed(verifyInference(eval)) ||
        failed(verifyInference(module.lookupSymbol<func::FuncOp>(ir::function::predict))))
      return failure();
    Builder builder(module.getContext());
    return success(succeeded(verifyMetric(eval, "loss_sum", builder.getF32Type())) &&
                   succeeded(verifyMetric(eval, "count", builder.getI64Type())) &&
                   succeeded(verifyMetric(eval, "correct", builder.getI64Type())));
  }
};

} // namespace
} // namespace titan
