#include "compiler/Optimize/Passes.h"
#include "compiler/Support/StateNames.h"
#include "compiler/Support/TaggedFunction.h"
#include "dialects/Titan/TensorBuilder.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_AVERAGEPARAMETERS
#include "compiler/Optimize/Passes.h.inc"

namespace {

struct Profile {
  std::string name;
  double decay = 0;
  bool warmup = false;
};

bool isName(StringRef text) {
  return !text.empty() && llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// Reads `name:decay` or `name:decay:warmup`.
FailureOr<Profile> parseProfile(ModuleOp module, StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, ':');
  Profile profile;
  profile.name = parts.front().str();
  if (!isName(parts.front()))
    return module.emitError("profile '") << parts.front() << "' is not letters, digits and '_'";
  profile.warmup = parts.size() == 3 && parts[2] == "warmup";
  if (parts.size() < 2 || parts.size() > 3 || (parts.size() == 3 && !profile.warmup) ||
      parts[1].getAsDouble(profile.decay))
    return module.emitError("profile '") << text << "' should be NAME:DECAY or NAME:DECAY:warmup";
  if (!(profile.decay >= 0 && profile.decay < 1))
    return module.emitError("profile '")
           << profile.name << "' has decay " << parts[1] << ", which is not in [0, 1)";
  return profile;
}

/// Adds the averages of all profiles to one @step behind its update.
class AverageBuilder {
public:
  AverageBuilder(ModuleOp module, func::FuncOp step)
      : module_(module), step_(step), builder_(step_.terminator()),
        t_(builder_, step.getLoc(), ArrayAttr(),
           ir::PhaseAttr::get(step.getContext(), ir::Phase::Update)) {}

  LogicalResult run(ArrayRef<Profile> profiles);

private:
  Value weightOf(const Profile& profile, Value updates);
  Value addState(const Profile& profile, ir::StateOp param);

  ModuleOp module_;
  TaggedFunction step_;
  OpBuilder builder_;
  ir::TensorBuilder t_;
};

/// What the new parameter counts for, f32; 1 at the first update, whatever the decay.
Value AverageBuilder::weightOf(const Profile& profile, Value updates) {
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
Value AverageBuilder::addState(const Profile& profile, ir::StateOp param) {
  OpBuilder builder(step_.function());
  auto type = RankedTensorType::get(param.getTensorType().getShape(), builder.getF32Type());
  auto state =
      ir::StateOp::create(builder, param.getLoc(), averageSymbol(profile.name, param.getSymName()),
                          type, ir::StateKind::Ema, /*trainable=*/false,
                          ir::RuleInitAttr::get(module_.getContext(), "constant", 0, 0));
  state.setCanonicalName(param.getName());
  return step_.addArgument(type, ir::tag::state, FlatSymbolRefAttr::get(state.getSymNameAttr()));
}

LogicalResult AverageBuilder::run(ArrayRef<Profile> profiles) {
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
  for (const Profile& profile : profiles) {
    Value weight = weightOf(profile, updates);
    for (auto [param, value] : updated) {
      ir::TensorBuilder t = t_;
      t.path = builder_.getStrArrayAttr(param.getName());
      ArrayRef<int64_t> shape = param.getTensorType().getShape();
      Value before = addState(profile, param);
      Value change = t.sub(t.convert(value, builder_.getF32Type()), before);
      Value after = t.add(before, t.mul(t.broadcast(weight, shape, {}), change));
      // A product with 0 instead would lose the sign of a zero, and keep no average of infinity.
      after = t.select(t.broadcast(applied, shape, {}), after, before);
      step_.addResult(after, ir::tag::state,
                      FlatSymbolRefAttr::get(builder_.getContext(),
                                             averageSymbol(profile.name, param.getSymName())));
    }
  }
  return success();
}

struct AverageParameters : impl::AverageParametersBase<AverageParameters> {
  using AverageParametersBase::AverageParametersBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<Profile> parsed;
    llvm::StringSet<> names;
    for (const std::string& text : profiles) {
      FailureOr<Profile> profile = parseProfile(module, text);
      if (failed(profile))
        return signalPassFailure();
      if (!names.insert(profile->name).second) {
        module.emitError("profile '") << profile->name << "' is there twice";
        return signalPassFailure();
      }
      parsed.push_back(*profile);
    }
    if (parsed.empty())
      return;
    auto step = module.lookupSymbol<func::FuncOp>(ir::function::step);
    if (!step) {
      module.emitError("the module has no @step to average: run insert-update first");
      return signalPassFailure();
    }
    if (failed(AverageBuilder(module, step).run(parsed)))
      signalPassFailure();
  }
};

} // namespace

} // namespace titan
