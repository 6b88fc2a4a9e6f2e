#include "compiler/Autodiff/Loss.h"
#include "compiler/Autodiff/Passes.h"
#include "compiler/Support/BatchDimension.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/VerifyTags.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace titan::ir;

namespace titan {

#define GEN_PASS_DEF_INSERTLOSS
#include "compiler/Autodiff/Passes.h.inc"

namespace {

/// What the three functions have in common.
struct Model {
  TaggedFunction function;
  Recipe recipe;
  unsigned output;             ///< index of the result that the loss reads
  RankedTensorType targetType; ///< null: the loss takes no targets, or an input is the target

  func::FuncOp op() const { return function.function(); }

  /// One [micro, ...] tensor of the batch: a model input or the targets.
  struct Field {
    std::string name;
    RankedTensorType type;
  };
  SmallVector<Field> fields() const {
    SmallVector<Field> fields;
    for (BlockArgument argument : op().getArguments())
      if (StringRef name = function.argumentTag(argument.getArgNumber(), tag::input); !name.empty())
        fields.push_back({name.str(), cast<RankedTensorType>(argument.getType())});
    if (targetType)
      fields.push_back({recipe.loss.target, targetType});
    return fields;
  }
};

LogicalResult checkFields(const Model& model) {
  for (const Model::Field& field : model.fields())
    if (field.type.getRank() < 1 || field.type.getDimSize(0) != model.recipe.batch.micro)
      return model.op().emitError() << "'" << field.name << "' is " << field.type
                                    << ", batch.micro = " << model.recipe.batch.micro
                                    << ": the first extent of every input and target is the batch";
  return success();
}

/// The result that the loss reads: `loss.output`, else the first; where the model computes its
/// loss, the first of one number, since many return it behind their logits.
FailureOr<unsigned> chooseOutput(TaggedFunction model, const LossRecipe& loss) {
  func::FuncOp function = model.function();
  if (function.getNumResults() == 0)
    return function.emitError() << "@model has no output";
  SmallVector<StringRef> names;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    if (!function.getResultAttr(i, tag::output))
      return function.emitError() << "result " << i << " of @model is no output";
    names.push_back(model.resultTag(i, tag::output));
  }
  if (!loss.output.empty()) {
    const auto* named = llvm::find(names, loss.output);
    if (named == names.end())
      return function.emitError() << "loss.output = \"" << loss.output
                                  << "\" is no output of the model, whose outputs are "
                                  << llvm::join(names, ", ");
    return static_cast<unsigned>(named - names.begin());
  }
  if (loss.kind == "output")
    for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
      if (cast<RankedTensorType>(type).getNumElements() == 1)
        return static_cast<unsigned>(i);
  return 0u;
}

/// A target belongs to a row of the output by its place alone, so the rows have to be those of
/// sample after sample. Where the factors do not follow the batch, the model is trusted.
LogicalResult checkSampleOrder(TaggedFunction model, unsigned output, const Recipe& recipe) {
  if (recipe.loss.kind == "output" || recipe.batch.micro == 1)
    return success();
  func::FuncOp function = model.function();
  auto isInput = [&](BlockArgument argument) {
    return !model.argumentTag(argument.getArgNumber(), tag::input).empty();
  };
  SmallVector<Value> inputs(llvm::make_filter_range(function.getArguments(), isInput));
  Value value = model.terminator()->getOperand(output);
  const BatchDimension::Place place = BatchDimension(function.front(), inputs).of(value);
  const bool isBehind = place.kind == BatchDimension::Kind::Dim && place.dim > 0;
  if (!isBehind && place.kind != BatchDimension::Kind::Inner)
    return success();
  return function.emitError() << "output '" << model.resultTag(output, tag::output) << "' is "
                              << value.getType() << ", with the samples "
                              << (isBehind ? "in" : "inside of") << " dimension " << place.dim
                              << ": the loss takes sample after sample, so transpose it in the "
                                 "model, [batch, positions, ...]";
}

FailureOr<Model> readModel(ModuleOp module) {
  FailureOr<Recipe> recipe = getRecipe(module);
  if (failed(recipe))
    return failure();
  func::FuncOp function = getFunction(module, ir::function::model);
  if (!function || failed(verifyTags(function, /*returnsStates=*/false)))
    return failure();
  TaggedFunction tagged(function);
  const LossRecipe& loss = recipe->loss;
  FailureOr<unsigned> output = chooseOutput(tagged, loss);
  if (failed(output) || failed(checkSampleOrder(tagged, *output, *recipe)))
    return failure();
  FailureOr<RankedTensorType> target = autodiff::targetType(
      loss, cast<RankedTensorType>(function.getResultTypes()[*output]),
      tagged.resultTag(*output, tag::output), recipe->batch.micro, function.getLoc());
  if (failed(target))
    return failure();
  if (BlockArgument shared = tagged.findArgument(tag::input, loss.target); *target && shared) {
    if (shared.getType() != *target)
      return function.emitError() << "loss.target = \"" << loss.target << "\" is an input of type "
                                  << shared.getType() << ", the loss takes " << *target;
    target = RankedTensorType();
  }
  Model model{tagged, *recipe, *output, *target};
  if (failed(checkFields(model)))
    return failure();
  return model;
}

/// An empty function before @model, with the model's states as arguments.
TaggedFunction createFunction(const Model& model, StringRef name, IRMapping& mapping) {
  OpBuilder builder(model.op());
  auto function = TaggedFunction::create(builder, model.op().getLoc(), name);
  SmallVector<BlockArgument> states;
  SmallVector<TaggedFunction::TaggedType> arguments;
  for (BlockArgument argument : model.op().getArguments())
    if (Attribute state = model.op().getArgAttr(argument.getArgNumber(), tag::state)) {
      states.push_back(argument);
      arguments.push_back({argument.getType(), tag::state, state});
    }
  mapping.map(states, function.addArguments(arguments));
  return function;
}

/// A running statistic of the model, and what moves it in each microbatch, in the model's order.
struct RunningStatistic {
  struct Term {
    OpResult sample; ///< of a norm of @model
    double momentum;
    double correction; ///< makes the sample statistic unbiased, where that is what is kept
  };
  BlockArgument argument; ///< of @model
  SmallVector<Term, 1> terms;
};

/// The argument of @model that has the state which `value` is. Null: it is none.
BlockArgument stateOf(const Model& model, Value value) {
  auto argument = dyn_cast_if_present<BlockArgument>(value);
  return argument && model.op().getArgAttr(argument.getArgNumber(), tag::state) ? argument
                                                                                : BlockArgument();
}

/// Those that are states: others are what the model computes them to be.
SmallVector<RunningStatistic> findRunningStatistics(const Model& model) {
  llvm::MapVector<BlockArgument, RunningStatistic> found;
  for (auto norm : model.function.terminator()->getBlock()->getOps<BatchNormOp>())
    for (auto [i, running] : llvm::enumerate(norm.getRunning()))
      if (BlockArgument argument = stateOf(model, running)) {
        RunningStatistic& statistic = found[argument];
        statistic.argument = argument;
        const auto n = static_cast<double>(norm.getCount());
        const bool isVariance = i == 1;
        statistic.terms.push_back({norm->getResult(static_cast<unsigned>(i) + 1),
                                   norm.getMomentum().convertToDouble(),
                                   isVariance && norm.getUnbiased() ? n / (n - 1) : 1});
      }
  return llvm::map_to_vector(found.takeVector(), [](auto& entry) { return entry.second; });
}

/// b' = (1 - m) b + m s for each s of a microbatch, in order: the sum of all s, each times its
/// share of the last b, and of the first b times its own. `rows` has the stack [microbatches, C] of
/// each term.
Value foldRows(OpBuilder& builder, const RunningStatistic& statistic, Value before,
               ArrayRef<Value> rows) {
  const TensorBuilder b(builder, statistic.terms.front().sample.getOwner(), Phase::Update);
  const int64_t count = tensorType(rows.front()).getDimSize(0);
  double share = 1; // of what is there before a term
  SmallVector<SmallVector<double>> shares(rows.size(), SmallVector<double>(count));
  for (int64_t i = count; i-- > 0;)
    for (size_t k = rows.size(); k-- > 0;) {
      const RunningStatistic::Term& term = statistic.terms[k];
      shares[k][i] = share * term.momentum * term.correction;
      share *= 1 - term.momentum;
    }
  Type element = tensorType(rows.front()).getElementType();
  Value sum = b.scale(b.convert(before, element), share);
  for (auto [stack, weights] : llvm::zip_equal(rows, shares)) {
    Value factors = b.constant(RankedTensorType::get(count, element), weights);
    Value weighted = b.mul(stack, b.broadcast(factors, tensorType(stack).getShape(), 0));
    sum = b.add(sum, b.reduce(ReduceKind::Sum, weighted, 0));
  }
  return b.convert(sum, tensorType(before).getElementType());
}

/// For each state that counts the batches of running statistics: how many norms count a microbatch.
llvm::MapVector<BlockArgument, int64_t> findBatchCounters(const Model& model) {
  llvm::MapVector<BlockArgument, int64_t> norms;
  for (auto norm : model.function.terminator()->getBlock()->getOps<BatchNormOp>())
    if (BlockArgument counter = stateOf(model, norm.getBatches()))
      ++norms[counter];
  return norms;
}

/// By name, a value for each field of the batch.
using Fields = llvm::StringMap<Value>;

/// Clones the model's body with the fields as its inputs: in training with `seed` and `step`, with
/// which random ops draw, and in evaluation without them. Returns the outputs.
SmallVector<Value> cloneBody(const Model& model, OpBuilder& builder, IRMapping& mapping,
                             const Fields& fields, Value seed = {}, Value step = {}) {
  for (BlockArgument argument : model.op().getArguments())
    if (StringRef name = model.function.argumentTag(argument.getArgNumber(), tag::input);
        !name.empty())
      mapping.map(argument, fields.lookup(name));
  for (Operation& op : model.function.terminator()->getBlock()->without_terminator()) {
    Operation* clone = builder.clone(op, mapping);
    if (!seed)
      mapping.map(op.getResults(), replaceByEvaluation(clone));
    else if (RandomOpInterface random = asRandom(clone))
      random.seed(seed, step);
    else if (auto norm = dyn_cast<BatchNormOp>(clone)) { // the step reads them behind its loop
      norm.getRunningMutable().clear();
      norm.getBatchesMutable().clear();
    }
  }
  SmallVector<Value> outputs;
  for (Value output : model.function.terminator().getOperands())
    outputs.push_back(mapping.lookup(output));
  return outputs;
}

autodiff::LossTerms buildLoss(const Model& model, OpBuilder& builder, ArrayRef<Value> outputs,
                              const Fields& fields, Value validRows) {
  TensorBuilder b(builder, model.op().getLoc(), builder.getStrArrayAttr({"loss"}));
  return autodiff::buildLoss(b, model.recipe.loss, outputs[model.output],
                             fields.lookup(model.recipe.loss.target), validRows,
                             model.recipe.batch.micro);
}

void buildStep(const Model& model) {
  IRMapping mapping;
  TaggedFunction step = createFunction(model, ir::function::step, mapping);
  OpBuilder builder(step.terminator());
  StateOp counter = getOrDeclareCounter(model.op()->getParentOfType<ModuleOp>(), counter::step);
  Type scalar = counter.getType();
  Value counterValue =
      step.addArgument(scalar, tag::state, FlatSymbolRefAttr::get(counter.getSymNameAttr()));
  unsigned stateCount = counterValue.getParentBlock()->getNumArguments();

  int64_t count = model.recipe.globalMicrobatches();
  SmallVector<Model::Field> fields = model.fields();
  SmallVector<Value> batches;
  for (const Model::Field& field : fields) {
    SmallVector<int64_t> shape = {count};
    llvm::append_range(shape, field.type.getShape());
    batches.push_back(
        step.addArgument(field.type.clone(shape), tag::input, builder.getStringAttr(field.name)));
  }
  Value seed = step.addArgument(scalar, tag::control, builder.getStringAttr("train.seed"));

  Location loc = model.op().getLoc();
  const SmallVector<RunningStatistic> statistics = findRunningStatistics(model);
  auto sumType = RankedTensorType::get({}, builder.getF32Type());
  const bool hasWeights = !model.recipe.loss.classWeights.empty();
  SmallVector<Type> types = {sumType, scalar};
  if (hasWeights)
    types.push_back(sumType);
  const size_t sums = types.size();
  for (const RunningStatistic& statistic : statistics)
    for (const RunningStatistic::Term& term : statistic.terms) {
      RankedTensorType row = tensorType(term.sample);
      types.push_back(row.clone(ArrayRef{count, row.getDimSize(0)}));
    }
  const auto stacked = static_cast<int64_t>(types.size() - sums);
  auto loop = accum::LoopOp::create(builder, loc, types, batches, ValueRange{}, count,
                                    accum::Order::Unordered, stacked);
  Block& body = loop.getBody().emplaceBlock();
  body.addArgument(builder.getIndexType(), loc);
  Fields slices;
  for (const Model::Field& field : fields)
    slices[field.name] = body.addArgument(field.type, loc);

  builder.setInsertionPointToEnd(&body);
  SmallVector<Value> outputs = cloneBody(model, builder, mapping, slices, seed, counterValue);
  autodiff::LossTerms loss = buildLoss(model, builder, outputs, slices, /*validRows=*/{});
  SmallVector<Value> yielded = {loss.sum, loss.count};
  if (hasWeights)
    yielded.push_back(loss.weight);
  for (const RunningStatistic& statistic : statistics)
    for (const RunningStatistic::Term& term : statistic.terms)
      yielded.push_back(mapping.lookup(Value(term.sample)));
  accum::YieldOp::create(builder, loc, yielded);

  builder.setInsertionPointAfter(loop);
  llvm::DenseMap<Value, Value> moved; // by the state's argument
  SmallVector<Value> stacks(loop.getStacks());
  for (ArrayRef<Value> left = stacks; const RunningStatistic& statistic : statistics) {
    const size_t terms = statistic.terms.size();
    Value before = mapping.lookup(Value(statistic.argument));
    moved[before] = foldRows(builder, statistic, before, left.take_front(terms));
    left = left.drop_front(terms);
  }
  for (auto [counter, norms] : findBatchCounters(model)) {
    const TensorBuilder b(builder, loc, {}, PhaseAttr::get(builder.getContext(), Phase::Update));
    Value before = mapping.lookup(Value(counter));
    moved[before] = b.shift(before, static_cast<double>(norms * count));
  }
  SmallVector<TaggedFunction::TaggedValue> results;
  for (unsigned i = 0; i < stateCount; ++i) {
    Value state = step.function().getArgument(i), after = moved.lookup(state);
    results.push_back(
        {after ? after : state, tag::state, step.function().getArgAttr(i, tag::state)});
  }
  results.push_back({loop.getResult(0), tag::metric, builder.getStringAttr("loss_sum")});
  results.push_back({loop.getResult(1), tag::metric, builder.getStringAttr("count")});
  if (hasWeights)
    results.push_back({loop.getResult(2), tag::metric, builder.getStringAttr("weight_sum")});
  step.addResults(results);
}

/// The arguments of one [micro, ...] tensor each.
Fields addFields(TaggedFunction& function, ArrayRef<Model::Field> fields) {
  Fields values;
  for (const Model::Field& field : fields)
    values[field.name] = function.addArgument(field.type, tag::input,
                                              StringAttr::get(field.type.getContext(), field.name));
  return values;
}

/// How many rows of a batch count: a control of @eval. Where samples depend on each other, as by a
/// norm of the batch without running statistics, padding would change the valid ones, so there is
/// none and all rows count: only full batches are evaluated. A loss that the model computes itself
/// joins its samples and counts for full batches alone.
Value addValidRows(const Model& model, TaggedFunction& eval, OpBuilder& builder,
                   const Fields& fields, Value output) {
  auto scalar = RankedTensorType::get({}, builder.getI64Type());
  SmallVector<Value> batched =
      llvm::map_to_vector(fields, [](auto& entry) { return entry.second; });
  if (model.recipe.loss.kind == "output" ||
      !BatchDimension(eval.function().front(), batched).joinsSamples(output))
    return eval.addArgument(scalar, tag::control, builder.getStringAttr("valid_rows"));
  return TensorBuilder(builder, model.op().getLoc(), {})
      .splat(scalar, static_cast<double>(model.recipe.batch.micro));
}

void buildEval(const Model& model) {
  IRMapping mapping;
  TaggedFunction eval = createFunction(model, ir::function::eval, mapping);
  OpBuilder builder(eval.terminator());
  Fields fields = addFields(eval, model.fields());
  SmallVector<Value> outputs = cloneBody(model, builder, mapping, fields);
  Value validRows = addValidRows(model, eval, builder, fields, outputs[model.output]);
  autodiff::LossTerms loss = buildLoss(model, builder, outputs, fields, validRows);
  eval.addResult(loss.sum, tag::metric, builder.getStringAttr("loss_sum"));
  eval.addResult(loss.count, tag::metric, builder.getStringAttr("count"));
  eval.addResult(loss.correct, tag::metric, builder.getStringAttr("correct"));
  if (loss.weight)
    eval.addResult(loss.weight, tag::metric, builder.getStringAttr("weight_sum"));
}

void buildPredict(const Model& model) {
  IRMapping mapping;
  TaggedFunction predict = createFunction(model, ir::function::predict, mapping);
  OpBuilder builder(predict.terminator());
  SmallVector<Model::Field> inputs = model.fields();
  if (model.targetType)
    inputs.pop_back();
  Fields fields = addFields(predict, inputs);
  for (auto [i, output] : llvm::enumerate(cloneBody(model, builder, mapping, fields)))
    predict.addResult(output, tag::output, model.op().getResultAttr(i, tag::output));
}

struct InsertLossPass : impl::InsertLossBase<InsertLossPass> {
  void runOnOperation() override {
    FailureOr<Model> model = readModel(getOperation());
    if (failed(model))
      return signalPassFailure();
    buildStep(*model);
    buildEval(*model);
    buildPredict(*model);
    model->op().erase();
  }
};

} // namespace
} // namespace titan
