#include "frontend/nn/Builder.h"

#include "frontend/Extents.h"
#include "frontend/Internally.h"
#include "frontend/raise/Passes.h"
#include "frontend/state/ElementTypes.h"
#include "runtime/program/Random.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace titan::nn {

using frontend::StateNames;

Builder::Builder(MLIRContext& context, std::string name, const Recipe& recipe)
    : context_(context), name_(std::move(name)), recipe_(recipe), builder_(&context) {
  context.loadDialect<func::FuncDialect, ir::TitanDialect>();
  Location loc = UnknownLoc::get(&context);
  module_ = ModuleOp::create(loc);
  (*module_)->setAttr(ir::tag::model, builder_.getStringAttr(name_));
  builder_.setInsertionPointToEnd(module_->getBody());
  function_ =
      func::FuncOp::create(builder_, loc, ir::function::model, builder_.getFunctionType({}, {}));
  function_.addEntryBlock();
}

void Builder::fail(const std::string& message) {
  if (!error_)
    error_ = message;
}

int64_t Builder::dim(const std::string& symbol, int64_t otherwise) {
  auto bound = recipe_.model.dims.find(symbol);
  const int64_t extent = bound == recipe_.model.dims.end() ? otherwise : bound->second;
  if (extent <= 0)
    fail(fmt::format("model.dims: {} = {}: must be positive", symbol, extent));
  return dims_[symbol] = extent;
}

Tensor Builder::input(const std::string& name, DType dtype, const Shape& sample) {
  if (hasFailed())
    return {};
  Shape shape = {recipe_.batch.micro};
  shape.insert(shape.end(), sample.begin(), sample.end());
  const std::string what = fmt::format("input '{}' of shape {}", name, toString(shape));
  if (dtype != DType::F32 && dtype != DType::I64 && dtype != DType::I32)
    fail(fmt::format("{}: {} is no type of inputs, which are F32, I64 or I32", what,
                     titan::name(dtype)));
  else if (!inputs_.insert(name).second)
    fail(fmt::format("{}: there is one of this name already", what));
  else if (Result<int64_t> count = frontend::checkedElementCount(shape, what); !count.ok())
    fail(count.error().message());
  else if (*count == 0)
    fail(fmt::format("{} is empty", what));
  if (hasFailed())
    return {};
  auto type = RankedTensorType::get(shape, frontend::elementTypeOf(&context_, dtype));
  return insertArgument(argumentTags_.size(), type,
                        builder_.getNamedAttr(ir::tag::input, builder_.getStringAttr(name)));
}

Tensor Builder::insertArgument(unsigned index, Type type, NamedAttribute tag) {
  argumentTags_.insert(argumentTags_.begin() + index, builder_.getDictionaryAttr(tag));
  return tensorOf(function_.front().insertArgument(index, type, function_.getLoc()));
}

void Builder::output(const std::string& name, Tensor value) {
  if (!value || hasFailed())
    return;
  for (const auto& [other, unused] : outputs_)
    if (other == name)
      return fail(fmt::format("output '{}': there is one of this name already", name));
  outputs_.emplace_back(name, valueOf(value));
}

ir::RuleInitAttr Builder::ruleOf(Init init) {
  switch (init.kind) {
  case Init::Kind::Normal:
    return ir::RuleInitAttr::get(&context_, "normal", init.a, init.b);
  case Init::Kind::Uniform:
    return ir::RuleInitAttr::get(&context_, "uniform", init.a, init.b);
  case Init::Kind::Table:
    return frontend::defaultInit(&context_, frontend::DefaultInit::Table);
  case Init::Kind::FanIn:
    return frontend::defaultInit(&context_, frontend::DefaultInit::FanIn,
                                 static_cast<int64_t>(init.a));
  case Init::Kind::Constant:
    break;
  }
  return ir::RuleInitAttr::get(&context_, "constant", init.a, init.b);
}

Tensor Builder::declare(const StateNames& names, const Shape& shape, DType dtype, bool trains,
                        ir::RuleInitAttr init) {
  Result<int64_t> count = frontend::checkedElementCount(shape, fmt::format("'{}'", names.name));
  if (!count.ok())
    fail(count.error().message());
  else if (*count == 0)
    fail(fmt::format("'{}' of shape {} is empty", names.name, toString(shape)));
  std::vector<std::string> all = names.aliases;
  all.insert(all.begin(), names.name);
  for (const std::string& name : all)
    if (!names_.insert(name).second)
      fail(fmt::format("'{}': two tensors of this name", name));
  if (hasFailed())
    return {};
  auto type = RankedTensorType::get(shape, frontend::elementTypeOf(&context_, dtype));
  OpBuilder atStates(function_);
  SmallVector<StringRef> aliases(names.aliases.begin(), names.aliases.end());
  auto state = ir::StateOp::create(
      atStates, function_.getLoc(), frontend::symbolOf(names.name), type,
      trains ? ir::StateKind::Param : ir::StateKind::Buffer,
      trains && !frontend::isFrozen(names, recipe_), init, ir::MemorySpace::Device,
      aliases.empty() ? ArrayAttr() : builder_.getStrArrayAttr(aliases));
  if (state.getSymName() != names.name)
    state.setCanonicalName(StringRef(names.name));
  NamedAttribute tag =
      builder_.getNamedAttr(ir::tag::state, FlatSymbolRefAttr::get(&context_, state.getSymName()));
  return insertArgument(states_++, type, tag);
}

Tensor Builder::parameter(const StateNames& names, const Shape& shape, Init init) {
  if (hasFailed())
    return {};
  parameters_.push_back(names);
  ir::RuleInitAttr rule = frontend::initByRecipe(&context_, names, recipe_);
  return declare(names, shape, DType::F32, /*trains=*/true, rule ? rule : ruleOf(init));
}

Tensor Builder::buffer(const std::string& name, const Shape& shape, Init init, DType dtype) {
  if (dtype != DType::F32 && dtype != DType::I64)
    fail(fmt::format("'{}': {} is no type of buffers, which are F32 or I64", name,
                     titan::name(dtype)));
  if (hasFailed())
    return {};
  return declare({name, {}}, shape, dtype, /*trains=*/false, ruleOf(init));
}

ir::TensorBuilder Builder::at(const Scope& scope) {
  StringRef path = scope.path();
  builder_.setInsertionPointToEnd(&function_.getBody().front());
  return {builder_, NameLoc::get(builder_.getStringAttr(path)), builder_.getStrArrayAttr(path)};
}

int64_t Builder::nextStream(const Scope& scope) {
  return static_cast<int64_t>(randomStream(scope.path(), drawn_[scope.path()]++));
}

/// What can be said of the model when it is complete.
Status Builder::check() const {
  if (error_)
    return Error::badInput("{}", *error_);
  if (recipe_.model.init != "fresh")
    return Error::badInput("model.init = \"{}\": there is no file with weights: start fresh, or "
                           "from a checkpoint with --init",
                           recipe_.model.init);
  if (outputs_.empty())
    return Error::badInput("the model has no output");
  for (const auto& [symbol, extent] : recipe_.model.dims)
    if (!dims_.contains(symbol)) {
      std::vector<std::string> known;
      for (const auto& [name, unused] : dims_)
        known.push_back(name);
      return Error::badInput("model.dims: no input has a dimension '{}'; there are: {}", symbol,
                             known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
    }
  return frontend::checkPatterns(parameters_, recipe_, "--write-recipe");
}

Result<OwningOpRef<ModuleOp>> Builder::finish(const std::function<void(PassManager&)>& instrument) {
  if (Status status = check(); !status.ok())
    return status.takeError().withContext(name_);
  builder_.setInsertionPointToEnd(&function_.getBody().front());
  SmallVector<Value> results;
  for (const auto& [name, value] : outputs_)
    results.push_back(value);
  func::ReturnOp::create(builder_, function_.getLoc(), results);
  function_.setFunctionType(builder_.getFunctionType(function_.front().getArgumentTypes(),
                                                     ValueRange(results).getTypes()));
  function_.setAllArgAttrs(argumentTags_);
  for (auto [i, output] : llvm::enumerate(outputs_))
    function_.setResultAttr(i, ir::tag::output, builder_.getStringAttr(output.first));

  PassManager passes(&context_);
  if (instrument)
    instrument(passes);
  frontend::addImportPasses(passes);
  // What the verifier finds here is a fault of the layers, which refuse what does not fit.
  TITAN_TRY(frontend::internally(context_, name_ + ": the module that was built is not valid", [&] {
    return failed(verify(*module_)) ? failure() : passes.run(*module_);
  }));
  return std::move(module_);
}

Result<OwningOpRef<ModuleOp>> buildModule(MLIRContext& context, const std::string& name,
                                          const Recipe& recipe, const ModelFunction& build,
                                          const std::function<void(PassManager&)>& instrument) {
  Builder builder(context, name, recipe);
  Model model(builder);
  build(model);
  return builder.finish(instrument);
}

} // namespace titan::nn
