#include "compiler/Optimize/Passes.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/StateNames.h"
#include "compiler/Support/TaggedFunction.h"
#include "dialects/Titan/TensorBuilder.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_AVERAGEPARAMETERS
#include "compiler/Optimize/Passes.h.inc"

namespace {

/// Adds the averages of all profiles to one @step behind its update.
class AverageBuilder {
public:
  AverageBuilder(ModuleOp module, func::FuncOp step)
      : module_(module), step_(step), builder_(step_.terminator()),
        t_(builder_, step.getLoc(), ArrayAttr(),
           ir::PhaseAttr::get(step.getContext(), ir::Phase::Update)) {}

  LogicalResult run(const EmaRecipe& ema);

private:
  Value weightOf(const EmaProfile& profile, Value updates);
  Value addState(StringRef profile, ir::StateOp param);

  ModuleOp module_;
  TaggedFunction step_;
  OpBuilder builder_;
  ir::TensorBuilder t_;
};

/// What the new parameter counts for, f32; 1 at the first update, whatever the decay.
Value AverageBuilder::weightOf(const EmaProfile& profile, Value updates) {
  Value count = t_.convert(updates, builder_.getF32Type());
  Value weight = t_.splatLike(count, 1 - profile.decay);
  if (profile.warmup) {
    Value decay = t_.create<ir::MinOp>(t_.splatLike(count, profile.decay),
                                       t_.div(t_.shift(count, 1), t_.shift(count, 10)));
    weight = t_.sub(t_.splatLike(count, 1), decay);
  }
  Value first = t_.compare(ir::ComparePredicate::EQ, updates, t_.splatLike(updates, 0));
  return t_.select(first, t_.splatLike(count, 1), weight);
}

/// Declares the average of `param`, in f32 and from zeros; returns its argument of @step.
Value AverageBuilder::addState(StringRef profile, ir::StateOp param) {
  OpBuilder builder(step_.function());
  auto type = RankedTensorType::get(param.getTensorType().getShape(), builder.getF32Type());
  auto state = ir::StateOp::create(
      builder, param.getLoc(), averageSymbol(profile, param.getSymName()), type, ir::StateKind::Ema,
      /*trainable=*/false, ir::RuleInitAttr::get(module_.getContext(), "constant", 0, 0));
  state.setCanonicalName(param.getName());
  return step_.addArgument(type, ir::tag::state, FlatSymbolRefAttr::get(state.getSymNameAttr()));
}

LogicalResult AverageBuilder::run(const EmaRecipe& ema) {
  Value updates = step_.findArgument(ir::tag::state, ir::counter::updates);
  Value applied = step_.findResult(ir::tag::metric, "applied");
  if (!updates || !applied)
    return step_.function().emitError("@step has no update to average: run insert-update first");
  // The update reads what the metric was converted from: no kernel gets another operand for it.
  auto converted = applied.getDefiningOp<ir::ConvertOp>();
  if (converted && ir::tensorType(converted.getOperand()).getElementType().isInteger(1))
    applied = converted.getOperand();
  else
    applied = t_.compare(ir::ComparePredicate::GT, applied, t_.splatLike(applied, 0));
  SmallVector<std::pair<ir::StateOp, Value>> updated;
  for (unsigned i = 0; i < step_.terminator().getNumOperands(); ++i) {
    ir::StateOp state = step_.resultState(i);
    Value value = step_.terminator().getOperand(i);
    if (state && state.getKind() == ir::StateKind::Param &&
        value != step_.findArgument(ir::tag::state, state.getSymName()))
      updated.push_back({state, value});
  }
  for (const auto& [name, profile] : ema.profiles) {
    Value weight = weightOf(profile, updates);
    for (auto [param, value] : updated) {
      ir::TensorBuilder t = t_;
      t.path = builder_.getStrArrayAttr(param.getName());
      ArrayRef<int64_t> shape = param.getTensorType().getShape();
      Value before = addState(name, param);
      Value change = t.sub(t.convert(value, builder_.getF32Type()), before);
      Value after = t.add(before, t.mul(t.broadcast(weight, shape, {}), change));
      // A product with 0 instead would lose the sign of a zero, and keep no average of infinity.
      after = t.select(t.broadcast(applied, shape, {}), after, before);
      step_.addResult(
          after, ir::tag::state,
          FlatSymbolRefAttr::get(builder_.getContext(), averageSymbol(name, param.getSymName())));
    }
  }
  return success();
}

struct AverageParameters : impl::AverageParametersBase<AverageParameters> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Recipe> recipe = getRecipe(module);
    if (failed(recipe))
      return signalPassFailure();
    if (recipe->ema.profiles.empty())
      return;
    auto step = module.lookupSymbol<func::FuncOp>(ir::function::step);
    if (!step) {
      module.emitError("the module has no @step to average: run insert-update first");
      return signalPassFailure();
    }
    if (failed(AverageBuilder(module, step).run(recipe->ema)))
      signalPassFailure();
  }
};

} // namespace

} // namespace titan
