#include "compiler/Optimize/Passes.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/StateNames.h"
#include "compiler/Support/TaggedFunction.h"
#include "compiler/Support/TargetInfo.h"
#include "dialects/Titan/TensorBuilder.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseSet.h"

#include <cmath>

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_AVERAGEPARAMETERS
#include "compiler/Optimize/Passes.h.inc"

namespace {

/// A parameter or buffer that a step changes.
struct Averaged {
  ir::StateOp state;
  Value value; ///< the new one
};

/// Adds the averages of some profiles to one function.
class AverageBuilder {
public:
  AverageBuilder(ModuleOp module, func::FuncOp function)
      : module_(module), function_(function), builder_(function_.terminator()),
        t_(builder_, function.getLoc(), ArrayAttr(),
           ir::PhaseAttr::get(function.getContext(), ir::Phase::Update)) {}

  const ir::TensorBuilder& ops() const { return t_; }

  /// `updates`: with the one behind which the averages move, i64. `applied`: was there one, i1;
  /// null: yes.
  void add(StringRef profile, const EmaProfile& what, ArrayRef<Averaged> averaged, Value updates,
           Value applied);

private:
  Value weightOf(const EmaProfile& profile, Value updates);
  Value power(Value base, int64_t exponent);
  ir::StateOp declare(StringRef profile, ir::StateOp state);

  ModuleOp module_;
  TaggedFunction function_;
  OpBuilder builder_;
  ir::TensorBuilder t_;
};

/// base^exponent, exponent >= 1, by squaring: a fixed order of products.
Value AverageBuilder::power(Value base, int64_t exponent) {
  Value result;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1)
      result = result ? t_.mul(result, base) : base;
    if (exponent > 1)
      base = t_.mul(base, base);
  }
  return result;
}

/// What the new value counts for, f32; 1 the first time, whatever the decay. min(a, b)^k is
/// min(a^k, b^k), and a^k is known here.
Value AverageBuilder::weightOf(const EmaProfile& profile, Value updates) {
  const double decay = std::pow(profile.decay, static_cast<double>(profile.every));
  Value before = t_.sub(updates, t_.splatLike(updates, 1));
  Value count = t_.convert(before, builder_.getF32Type());
  Value weight = t_.splatLike(count, 1 - decay);
  if (profile.warmup) {
    Value most = power(t_.div(t_.shift(count, 1), t_.shift(count, 10)), profile.every);
    weight = t_.sub(t_.splatLike(count, 1), t_.create<ir::MinOp>(t_.splatLike(count, decay), most));
  }
  Value first = t_.compare(ir::ComparePredicate::LT, before,
                           t_.splatLike(before, static_cast<double>(profile.every)));
  return t_.select(first, t_.splatLike(count, 1), weight);
}

/// Declares the average of `state`, in f32 and from zeros.
ir::StateOp AverageBuilder::declare(StringRef profile, ir::StateOp state) {
  OpBuilder builder(*module_.getOps<func::FuncOp>().begin());
  auto type = RankedTensorType::get(state.getTensorType().getShape(), builder.getF32Type());
  auto average = ir::StateOp::create(
      builder, state.getLoc(), averageSymbol(profile, state.getSymName()), type, ir::StateKind::Ema,
      /*trainable=*/false, ir::RuleInitAttr::get(module_.getContext(), "constant", 0, 0));
  average.setCanonicalName(state.getName());
  return average;
}

void AverageBuilder::add(StringRef name, const EmaProfile& profile, ArrayRef<Averaged> averaged,
                         Value updates, Value applied) {
  Value weight = weightOf(profile, updates);
  SmallVector<TaggedFunction::TaggedType> arguments;
  for (const Averaged& each : averaged) {
    ir::StateOp average = declare(name, each.state);
    arguments.push_back({average.getTensorType(), ir::tag::state,
                         FlatSymbolRefAttr::get(average.getSymNameAttr())});
  }
  SmallVector<TaggedFunction::TaggedValue> results;
  for (auto [each, added, argument] :
       llvm::zip_equal(averaged, arguments, function_.addArguments(arguments))) {
    auto [state, value] = each;
    Value old = argument;
    ir::TensorBuilder t = t_;
    t.path = builder_.getStrArrayAttr(state.getName());
    ArrayRef<int64_t> shape = state.getTensorType().getShape();
    Value change = t.sub(t.convert(value, builder_.getF32Type()), old);
    Value moved = t.add(old, t.mul(t.broadcast(weight, shape, {}), change));
    // A product with 0 instead would lose the sign of a zero, and keep no average of infinity.
    if (applied)
      moved = t.select(t.broadcast(applied, shape, {}), moved, old);
    results.push_back({moved, ir::tag::state, added.name});
  }
  function_.addResults(results);
}

/// The buffers of f32 that `patterns` name. Fails where a pattern names none, or others alone.
FailureOr<llvm::DenseSet<ir::StateOp>> namedBuffers(ModuleOp module,
                                                    ArrayRef<std::string> patterns) {
  llvm::DenseSet<ir::StateOp> named;
  for (const std::string& pattern : patterns) {
    bool matched = false;
    ir::StateOp other; // of another type
    for (auto state : module.getOps<ir::StateOp>()) {
      if (state.getKind() != ir::StateKind::Buffer || !matchesName(pattern, state))
        continue;
      if (!state.getTensorType().getElementType().isF32()) {
        other = state;
        continue;
      }
      matched = true;
      named.insert(state);
    }
    if (!matched && other)
      return module.emitError("ema.buffers '") << pattern << "' matches buffer '" << other.getName()
                                               << "' of " << other.getTensorType().getElementType()
                                               << ": only f32 is averaged, the others are copied";
    if (!matched)
      return module.emitError("ema.buffers '") << pattern << "' matches no buffer";
  }
  return named;
}

/// What @step changes of parameters and of the buffers that the recipe names.
FailureOr<SmallVector<Averaged>> findAveraged(TaggedFunction step, const EmaRecipe& ema) {
  auto module = step.function()->getParentOfType<ModuleOp>();
  FailureOr<llvm::DenseSet<ir::StateOp>> buffers = namedBuffers(module, ema.buffers);
  if (failed(buffers))
    return failure();
  SmallVector<Averaged> averaged;
  const llvm::StringMap<BlockArgument> arguments = step.argumentsBy(ir::tag::state);
  const SymbolTable states(module);
  for (unsigned i = 0; i < step.terminator().getNumOperands(); ++i) {
    auto state = states.lookup<ir::StateOp>(step.resultTag(i, ir::tag::state));
    Value value = step.terminator().getOperand(i);
    if (state && (state.getKind() == ir::StateKind::Param || buffers->contains(state)) &&
        value != arguments.lookup(state.getSymName()))
      averaged.push_back({state, value});
  }
  return averaged;
}

/// Behind the update of @step: the averages that follow each one.
LogicalResult extendStep(TaggedFunction step, const EmaRecipe& ema, ArrayRef<Averaged> averaged) {
  Value updates = step.findResult(ir::tag::state, ir::counter::updates);
  Value applied = step.findResult(ir::tag::metric, "applied");
  if (!updates || !applied)
    return step.function().emitError("@step has no update to average: run insert-update first");
  AverageBuilder builder(step.function()->getParentOfType<ModuleOp>(), step.function());
  const ir::TensorBuilder& t = builder.ops();
  // The update reads what the metric was converted from: no kernel gets another operand for it.
  auto converted = applied.getDefiningOp<ir::ConvertOp>();
  if (converted && ir::tensorType(converted.getOperand()).getElementType().isInteger(1))
    applied = converted.getOperand();
  else
    applied = t.compare(ir::ComparePredicate::GT, applied, t.splatLike(applied, 0));
  for (const auto& [name, profile] : ema.profiles)
    if (profile.every == 1)
      builder.add(name, profile, averaged, updates, applied);
  return success();
}

/// A function that moves the averages of all profiles with this `every`: it is run behind an
/// applied update, when that many were made since it last was.
void addFunction(ModuleOp module, const EmaRecipe& ema, int64_t every,
                 ArrayRef<Averaged> averaged) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto function = TaggedFunction::create(builder, module.getLoc(), averageFunction(every));
  const auto argumentOf = [&](ir::StateOp state) {
    return function.addArgument(state.getTensorType(), ir::tag::state,
                                FlatSymbolRefAttr::get(state.getSymNameAttr()));
  };
  SmallVector<Averaged> values;
  for (auto [state, value] : averaged)
    values.push_back({state, argumentOf(state)});
  Value updates = argumentOf(ir::getOrDeclareCounter(module, ir::counter::updates));
  AverageBuilder average(module, function.function());
  for (const auto& [name, profile] : ema.profiles)
    if (profile.every == every)
      average.add(name, profile, values, updates, /*applied=*/{});
}

struct AverageParameters : impl::AverageParametersBase<AverageParameters> {
  LogicalResult run(ModuleOp module, const EmaRecipe& ema) {
    auto step = module.lookupSymbol<func::FuncOp>(ir::function::step);
    if (!step)
      return module.emitError("the module has no @step to average: run insert-update first");
    FailureOr<SmallVector<Averaged>> averaged = findAveraged(TaggedFunction(step), ema);
    if (failed(averaged) || failed(extendStep(TaggedFunction(step), ema, *averaged)))
      return failure();
    for (int64_t every : ema.intervals())
      addFunction(module, ema, every, *averaged);
    return success();
  }

  void runOnOperation() override {
    FailureOr<Recipe> recipe = getRecipe(getOperation());
    if (failed(recipe) ||
        (!recipe->ema.profiles.empty() && failed(run(getOperation(), recipe->ema))))
      signalPassFailure();
  }
};

} // namespace

} // namespace titan
