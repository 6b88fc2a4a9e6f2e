#include "compiler/Optimize/UpdateRules.h"

using namespace mlir;

namespace titan {

namespace {

UpdateRule sgd(const OptimizerRecipe& recipe) {
  UpdateRule rule;
  if (recipe.momentum != 0)
    rule.slots = {"momentum_buffer"};
  rule.build = [recipe](const ir::TensorBuilder& t, Value param, Value gradient, ValueRange slots,
                        const UpdateScalars& scalars,
                        const ParameterGroup& group) -> SmallVector<Value> {
    OpBuilder& b = t.builder;
    Value buffer = slots.empty() ? Value() : slots.front();
    auto update = t.create<ir::SgdOp>(
        param.getType(), buffer ? buffer.getType() : Type(), param, gradient, buffer, scalars.lr,
        scalars.weightDecay, scalars.scale, scalars.apply, b.getF64FloatAttr(recipe.momentum),
        b.getBoolAttr(recipe.nesterov), b.getF64FloatAttr(group.lrScale));
    return SmallVector<Value>(update.getResults());
  };
  return rule;
}

UpdateRule adam(const OptimizerRecipe& recipe, bool decoupled) {
  UpdateRule rule;
  rule.slots = {"exp_avg", "exp_avg_sq"};
  rule.build = [recipe, decoupled](const ir::TensorBuilder& t, Value param, Value gradient,
                                   ValueRange slots, const UpdateScalars& scalars,
                                   const ParameterGroup& group) -> SmallVector<Value> {
    OpBuilder& b = t.builder;
    Type type = param.getType();
    auto update = t.create<ir::AdamOp>(
        type, type, type, param, gradient, slots[0], slots[1], scalars.lr, scalars.weightDecay,
        scalars.scale, scalars.updates, scalars.apply, b.getF64FloatAttr(recipe.beta1),
        b.getF64FloatAttr(recipe.beta2), b.getF64FloatAttr(recipe.eps), b.getBoolAttr(decoupled),
        b.getF64FloatAttr(group.lrScale));
    return SmallVector<Value>(update.getResults());
  };
  return rule;
}

} // namespace

std::optional<UpdateRule> findUpdateRule(const OptimizerRecipe& recipe) {
  if (recipe.kind == "sgd")
    return sgd(recipe);
  if (recipe.kind == "adam")
    return adam(recipe, /*decoupled=*/false);
  if (recipe.kind == "adamw")
    return adam(recipe, /*decoupled=*/true);
  return std::nullopt;
}

} // namespace titan
