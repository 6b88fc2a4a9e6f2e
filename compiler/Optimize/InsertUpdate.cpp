#include "compiler/Optimize/Passes.h"
#include "compiler/Optimize/UpdateRules.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/StateNames.h"
#include "compiler/Support/TaggedFunction.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_INSERTUPDATE
#include "compiler/Optimize/Passes.h.inc"

namespace {

ir::ScheduleKind scheduleKind(const std::string& kind) {
  return ir::symbolizeScheduleKind(kind).value_or(ir::ScheduleKind::Constant);
}

/// Builds the update phase of one @step.
class UpdateBuilder {
public:
  UpdateBuilder(ModuleOp module, func::FuncOp step, const Recipe& recipe)
      : module_(module), parameters_(module), step_(step),
        arguments_(step_.argumentsBy(ir::tag::state)), recipe_(recipe),
        builder_(step_.terminator()), t_(builder_, step.getLoc(), ArrayAttr(),
                                         ir::PhaseAttr::get(step.getContext(), ir::Phase::Update)) {
  }

  LogicalResult run();

private:
  RankedTensorType scalar(Type element) { return RankedTensorType::get({}, element); }
  Value control(StringRef key, Type element) {
    return step_.getArgument(scalar(element), ir::tag::control, builder_.getStringAttr(key));
  }
  /// The state's argument of @step; appended when it is new.
  Value stateArgument(ir::StateOp state) {
    BlockArgument& argument = arguments_[state.getSymName()];
    if (!argument)
      argument = step_.addArgument(state.getTensorType(), ir::tag::state,
                                   FlatSymbolRefAttr::get(state.getSymNameAttr()));
    return argument;
  }
  ir::StateOp declareSlot(ir::StateOp param, StringRef suffix);
  /// Declares the slots of all parameters, by parameter, and appends their arguments.
  llvm::DenseMap<StringAttr, SmallVector<ir::StateOp, 2>> addSlots(ArrayRef<StringRef> suffixes);
  void collectGradients();
  LogicalResult checkGroups();
  /// Sum of squares of all gradients, in f32.
  Value sumOfSquares();
  /// The same with bits that do not depend on the ranks that have parts of the gradients.
  Value exactSumOfSquares();
  Value divisorOf(Value count);
  Value clipFactor(Value norm);
  void updateParameters(const UpdateRule& rule, UpdateScalars scalars);
  void updateCounters(Value applied);
  Value movedBuffer(BlockArgument before, FlatSymbolRefAttr symbol);
  void setResults(ArrayRef<TaggedFunction::TaggedValue> metrics);

  ModuleOp module_;
  SymbolTable parameters_; ///< what was declared before the slots
  TaggedFunction step_;
  llvm::StringMap<BlockArgument> arguments_; ///< of `step_`, by state symbol
  const Recipe& recipe_;
  OpBuilder builder_;
  ir::TensorBuilder t_;
  /// By state symbol, in the order of @step's results.
  llvm::MapVector<StringAttr, Value> gradients_;
  llvm::DenseMap<StringAttr, Value> next_; ///< states that change
  Value apply_;                            ///< is the step's update made?
};

ir::StateOp UpdateBuilder::declareSlot(ir::StateOp param, StringRef suffix) {
  OpBuilder builder(module_.getContext());
  builder.setInsertionPointAfter(param);
  // Several slots of one parameter keep their order.
  while (auto slot = dyn_cast_if_present<ir::StateOp>(builder.getInsertionPoint() ==
                                                              module_.getBody()->end()
                                                          ? nullptr
                                                          : &*builder.getInsertionPoint())) {
    if (slot.getKind() != ir::StateKind::Slot)
      break;
    builder.setInsertionPointAfter(slot);
  }
  std::string name = (param.getName() + "." + suffix).str();
  return ir::StateOp::create(builder, param.getLoc(), name, param.getTensorType(),
                             ir::StateKind::Slot, /*trainable=*/false,
                             ir::RuleInitAttr::get(module_.getContext(), "constant", 0, 0));
}

Value UpdateBuilder::sumOfSquares() {
  Value sum;
  for (auto [symbol, gradient] : gradients_) {
    Value squares = t_.reduceAll(ir::ReduceKind::Sum, t_.mul(gradient, gradient));
    squares = t_.convert(squares, builder_.getF32Type());
    sum = sum ? t_.add(sum, squares) : squares;
  }
  return sum ? sum : t_.splat(scalar(builder_.getF32Type()), 0);
}

/// A gradient is divided along its outermost dimension, so what stands at one index of it is summed
/// in one order on any rank; these sums are added exactly.
Value UpdateBuilder::exactSumOfSquares() {
  Value words;
  for (auto [symbol, gradient] : gradients_) {
    Value rows = t_.mul(gradient, gradient);
    if (const int64_t rank = ir::tensorType(rows).getRank(); rank > 1)
      rows = t_.reduce(ir::ReduceKind::Sum, rows, llvm::to_vector(llvm::seq<int64_t>(1, rank)));
    Value sum = t_.create<ir::ExactSumOp>(t_.convert(rows, builder_.getF32Type()));
    words = words ? t_.add(words, sum) : sum;
  }
  return words ? t_.create<ir::ExactValueOp>(words) : t_.splat(scalar(builder_.getF32Type()), 0);
}

llvm::DenseMap<StringAttr, SmallVector<ir::StateOp, 2>>
UpdateBuilder::addSlots(ArrayRef<StringRef> suffixes) {
  llvm::DenseMap<StringAttr, SmallVector<ir::StateOp, 2>> slots;
  SmallVector<TaggedFunction::TaggedType> arguments;
  for (auto& [symbol, gradient] : gradients_)
    for (StringRef suffix : suffixes) {
      ir::StateOp slot = declareSlot(parameters_.lookup<ir::StateOp>(symbol), suffix);
      slots[symbol].push_back(slot);
      arguments.push_back(
          {slot.getTensorType(), ir::tag::state, FlatSymbolRefAttr::get(slot.getSymNameAttr())});
    }
  for (auto [added, argument] : llvm::zip_equal(arguments, step_.addArguments(arguments)))
    arguments_[cast<FlatSymbolRefAttr>(added.name).getValue()] = argument;
  return slots;
}

void UpdateBuilder::updateParameters(const UpdateRule& rule, UpdateScalars scalars) {
  Value runTimeDecay = control("optimizer.weight_decay", builder_.getF32Type());
  std::map<double, Value> decays; // parameters of one group share theirs
  llvm::DenseMap<StringAttr, SmallVector<ir::StateOp, 2>> slotsOf = addSlots(rule.slots);
  for (auto [symbol, gradient] : gradients_) {
    auto param = parameters_.lookup<ir::StateOp>(symbol);
    ParameterGroup group = groupOf(recipe_.optimizer, param);
    ir::TensorBuilder t = t_;
    t.path = builder_.getStrArrayAttr(param.getName());

    MutableArrayRef<ir::StateOp> slotStates = slotsOf[symbol];
    SmallVector<Value> slots;
    for (ir::StateOp slot : slotStates)
      slots.push_back(stateArgument(slot));
    scalars.weightDecay = runTimeDecay;
    if (group.weightDecay) {
      Value& decay = decays[*group.weightDecay];
      if (!decay)
        decay = t_.splat(scalar(builder_.getF32Type()), *group.weightDecay);
      scalars.weightDecay = decay;
    }
    SmallVector<Value> results =
        rule.build(t, stateArgument(param), gradient, slots, scalars, group);
    next_[symbol] = results.front();
    for (auto [slot, value] : llvm::zip_equal(slotStates, ArrayRef(results).drop_front()))
      next_[slot.getSymNameAttr()] = value;
  }
}

void UpdateBuilder::updateCounters(Value applied) {
  Type i64 = builder_.getI64Type();
  auto advance = [&](StringRef symbol, Value amount) {
    ir::StateOp counter = ir::getOrDeclareCounter(module_, symbol);
    next_[counter.getSymNameAttr()] = t_.add(stateArgument(counter), amount);
  };
  Value one = t_.splat(scalar(i64), 1);
  advance(ir::counter::step, one);
  advance(ir::counter::updates, applied);
  advance(ir::counter::samples, t_.splat(scalar(i64), recipe_.batch.global));
  advance(ir::counter::skipped, t_.sub(one, applied));
}

/// What the loop made of a buffer; what it was where the step is skipped.
Value UpdateBuilder::movedBuffer(BlockArgument before, FlatSymbolRefAttr symbol) {
  Value after = step_.findResult(ir::tag::state, symbol.getValue());
  if (!after || after == before)
    return after;
  ir::TensorBuilder t = t_;
  t.path = builder_.getStrArrayAttr(parameters_.lookup<ir::StateOp>(symbol.getAttr()).getName());
  return t.select(t.broadcast(apply_, ir::tensorType(before).getShape(), {}), after, before);
}

void UpdateBuilder::setResults(ArrayRef<TaggedFunction::TaggedValue> metrics) {
  SmallVector<TaggedFunction::TaggedValue> results;
  func::FuncOp function = step_.function();
  for (BlockArgument argument : function.getArguments()) {
    auto symbol =
        function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), ir::tag::state);
    if (!symbol)
      continue;
    Value next = next_.lookup(symbol.getAttr());
    if (!next)
      next = movedBuffer(argument, symbol);
    results.push_back({next ? next : Value(argument), ir::tag::state, symbol});
  }
  llvm::append_range(results, metrics);
  step_.setResults(results);
}

void UpdateBuilder::collectGradients() {
  for (unsigned i = 0; i < step_.terminator().getNumOperands(); ++i)
    if (StringRef symbol = step_.resultTag(i, ir::tag::gradient); !symbol.empty())
      gradients_[builder_.getStringAttr(symbol)] = step_.terminator().getOperand(i);
}

LogicalResult UpdateBuilder::checkGroups() {
  for (const OptimizerGroup& group : recipe_.optimizer.groups) {
    auto matching = llvm::make_filter_range(module_.getOps<ir::StateOp>(), [&](ir::StateOp state) {
      return state.getKind() == ir::StateKind::Param && matchesName(group.match, state);
    });
    if (matching.empty())
      return module_.emitError("optimizer.group '") << group.match << "' matches no parameter";
    if (llvm::none_of(matching, [](ir::StateOp state) { return state.getTrainable(); }))
      return module_.emitError("optimizer.group '")
             << group.match << "' matches frozen parameters alone, which nothing updates";
  }
  return success();
}

/// Clipping as torch.nn.utils.clip_grad_norm_, where `norm` is that of the mean gradient.
/// What the sums of the loss and of its gradients are divided by. A step without targets, or
/// without one whose class has a weight, divides by 1.
Value UpdateBuilder::divisorOf(Value count) {
  if (Value weight = step_.findResult(ir::tag::metric, "weight_sum")) {
    Value zero = t_.splatLike(weight, 0), one = t_.splatLike(weight, 1);
    return t_.select(t_.compare(ir::ComparePredicate::GT, weight, zero), weight, one);
  }
  Value valid = t_.create<ir::MaxOp>(count, t_.splatLike(count, 1));
  return t_.convert(valid, builder_.getF32Type());
}

Value UpdateBuilder::clipFactor(Value norm) {
  Value limit = t_.splatLike(norm, recipe_.optimizer.clipNorm);
  return t_.create<ir::MinOp>(t_.div(limit, t_.shift(norm, 1e-6)), t_.splatLike(norm, 1));
}

LogicalResult UpdateBuilder::run() {
  std::optional<UpdateRule> rule = findUpdateRule(recipe_.optimizer);
  if (!rule)
    return module_.emitError("optimizer.kind = '")
           << recipe_.optimizer.kind << "' is none of sgd, adam, adamw";
  Value lossSum = step_.findResult(ir::tag::metric, "loss_sum");
  Value count = step_.findResult(ir::tag::metric, "count");
  if (!lossSum || !count)
    return step_.function().emitError(
        "@step returns no loss_sum or no count: run differentiate first");
  collectGradients();
  if (failed(checkGroups()))
    return failure();

  Type f32 = builder_.getF32Type(), i64 = builder_.getI64Type();
  Value divisor = divisorOf(count);
  Value inverse = t_.div(t_.splatLike(divisor, 1), divisor);
  Value squares = recipe_.mesh.isTree() ? exactSumOfSquares() : sumOfSquares();
  Value norm = t_.mul(t_.create<ir::SqrtOp>(squares), inverse);

  UpdateScalars scalars;
  scalars.scale = inverse; // the mean gradient is scale * (the gradient of the sum)
  if (recipe_.optimizer.clipNorm > 0)
    scalars.scale = t_.mul(inverse, clipFactor(norm));
  Value finite =
      t_.create<ir::AndOp>(t_.create<ir::IsFiniteOp>(lossSum), t_.create<ir::IsFiniteOp>(squares));
  scalars.apply = t_.create<ir::AndOp>(
      finite, t_.compare(ir::ComparePredicate::GT, count, t_.splatLike(count, 0)));
  apply_ = scalars.apply;
  Value applied = t_.convert(apply_, i64);

  Value stepCounter = stateArgument(ir::getOrDeclareCounter(module_, ir::counter::step));
  scalars.updates = stateArgument(ir::getOrDeclareCounter(module_, ir::counter::updates));
  scalars.lr = t_.create<ir::ScheduleOp>(
      scalar(f32), stepCounter, control("optimizer.lr", f32), control("schedule.warmup_steps", i64),
      control("schedule.steps", i64), control("schedule.min_lr_ratio", f32),
      ir::ScheduleKindAttr::get(module_.getContext(), scheduleKind(recipe_.schedule.kind)));

  updateParameters(*rule, scalars);
  updateCounters(applied);
  auto metric = [&](StringRef name, Value value) {
    return TaggedFunction::TaggedValue{value, ir::tag::metric, builder_.getStringAttr(name)};
  };
  Value loss = t_.div(t_.convert(lossSum, f32), divisor);
  setResults({metric("loss", loss), metric("grad_norm", norm), metric("lr", scalars.lr),
              metric("count", count), metric("applied", applied)});
  return success();
}

struct InsertUpdate : impl::InsertUpdateBase<InsertUpdate> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Recipe> recipe = getRecipe(module);
    auto step = module.lookupSymbol<func::FuncOp>(ir::function::step);
    if (!step)
      module.emitError("the module has no @step: run differentiate first");
    if (failed(recipe) || !step || failed(UpdateBuilder(module, step, *recipe).run()))
      signalPassFailure();
  }
};

} // namespace

} // namespace titan
