#include "frontend/onnx/Import.h"
#include "frontend/Internally.h"
#include "frontend/onnx/ReadGraph.h"

#include "frontend/onnx/convert/AsInFile.h"
#include "frontend/onnx/convert/Conversion.h"
#include "frontend/onnx/convert/InputDims.h"
#include "frontend/onnx/convert/RebindBatch.h"
#include "frontend/onnx/convert/Rows.h"
#include "frontend/onnx/convert/States.h"
#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/MissingMasks.h"
#include "frontend/onnx/name/Scopes.h"
#include "frontend/onnx/name/Values.h"
#include "frontend/onnx/read/Branches.h"
#include "frontend/onnx/read/Reader.h"
#include "frontend/raise/Evaluate.h"
#include "frontend/raise/Passes.h"
#include "runtime/program/Random.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <filesystem>

using namespace mlir;

namespace titan::frontend {

namespace {

class Importer {
public:
  Importer(MLIRContext& context, const Graph& graph, const NameTable& names, const Recipe& recipe,
           const std::function<void(PassManager&)>& instrument)
      : context_(context), graph_(graph), names_(names), recipe_(recipe), instrument_(instrument),
        builder_(&context) {
    context.loadDialect<func::FuncDialect, ir::TitanDialect>();
  }

  Result<OwningOpRef<ModuleOp>> run() {
    BoundInputs inputs = TITAN_TRY(bindInputs(graph_, recipe_));
    createModule();
    std::vector<ir::StateOp> states = TITAN_TRY(addStates(*module_, graph_, names_, recipe_));
    TITAN_TRY(createFunction(states, inputs));
    TITAN_TRY(addConstants());
    for (const Node& node : graph_.nodes)
      convert(node);
    TITAN_TRY(reportProblems());
    TITAN_TRY(checkPaddings());
    TITAN_TRY(finishFunction());
    if (inputs.bakedBatch != 0) {
      eraseDeadOps();
      TITAN_TRY(rebindBatch(function_, inputs, recipe_.batch.micro));
    }
    function_.walk([](Operation* op) { op->removeDiscardableAttr(kMeanAttribute); });
    eraseDeadOps();
    TITAN_TRY(verifyModule());
    TITAN_TRY(noteBuffers());
    TITAN_TRY(raise());
    return std::move(module_);
  }

private:
  void createModule() {
    module_ = ModuleOp::create(UnknownLoc::get(&context_));
    std::string file = std::filesystem::path(graph_.source).filename().string();
    (*module_)->setAttr(ir::tag::model, builder_.getStringAttr(file));
  }

  Status createFunction(ArrayRef<ir::StateOp> states, const BoundInputs& inputs) {
    SmallVector<Type> types;
    SmallVector<DictionaryAttr> tags;
    for (ir::StateOp state : states) {
      types.push_back(state.getTensorType());
      tags.push_back(builder_.getDictionaryAttr(builder_.getNamedAttr(
          ir::tag::state, FlatSymbolRefAttr::get(&context_, state.getSymName()))));
    }
    for (const BoundInput& input : inputs.inputs) {
      types.push_back(RankedTensorType::get(input.shape, elementTypeOf(&context_, input.dtype)));
      tags.push_back(builder_.getDictionaryAttr(
          builder_.getNamedAttr(ir::tag::input, builder_.getStringAttr(input.name))));
    }
    builder_.setInsertionPointToEnd(module_->getBody());
    function_ =
        func::FuncOp::create(builder_, module_->getLoc(), ir::function::model,
                             builder_.getFunctionType(types, {}), ArrayRef<NamedAttribute>{}, tags);
    Block* body = function_.addEntryBlock();
    builder_.setInsertionPointToStart(body);
    size_t next = 0;
    StateValues arguments;
    for (const NamedState& state : names_.states)
      arguments[state.name] = body->getArgument(next++);
    ir::TensorBuilder b(builder_, function_.getLoc());
    auto read = [&](const NamedTensor& tensor) -> Status {
      Value inFile = TITAN_TRY(
          asInFile(b, tensor, graph_.initializers.at(tensor.initializer).shape, arguments));
      values_[tensor.initializer].value = inFile;
      if (tensor.paddingIndex)
        paddings_[inFile] = {&tensor};
      return {};
    };
    for (bool isCopy : {false, true}) // second readings last
      for (const NamedTensor& tensor : names_.tensors)
        if (tensor.kind != TensorKind::Constant && tensor.isCopy == isCopy)
          TITAN_TRY(read(tensor));
    for (const BoundInput& input : inputs.inputs)
      values_[input.name].value = body->getArgument(next++);
    return {};
  }

  Status addConstants() {
    for (const NamedTensor& tensor : names_.tensors) {
      if (tensor.kind == TensorKind::Buffer)
        TITAN_TRY(addMask(tensor));
      if (tensor.kind != TensorKind::Constant)
        continue;
      const Tensor& file = graph_.initializers.at(tensor.initializer);
      Known& known = values_[tensor.initializer];
      if (elementCount(file.shape) <= kLargestFolded)
        known.host = TITAN_TRY(toHost(file));
      else
        known.file = &file;
    }
    return {};
  }

  /// A buffer of zeros and ones is a mask, which nothing writes: its state stays in the table, and
  /// what is computed from it is known.
  Status addMask(const NamedTensor& tensor) {
    const Tensor& file = graph_.initializers.at(tensor.initializer);
    if (tensor.role == Role::Statistic || !tensor.pieces.empty() || !file.missing.empty() ||
        elementCount(file.shape) > kLargestFolded || !isMask(file))
      return {};
    values_[tensor.initializer].host = TITAN_TRY(toHost(file));
    return {};
  }

  std::vector<Known> operandsOf(const Node& node) const {
    std::vector<Known> operands;
    for (const std::string& input : node.inputs) {
      auto it = values_.find(input);
      operands.push_back(input.empty() || it == values_.end() ? Known() : it->second);
    }
    return operands;
  }

  void convert(const Node& node) {
    if (isIf(node) || isLoop(node)) {
      if (Status status = isIf(node) ? convertIf(node) : convertLoop(node); !status.ok())
        fail(node, status.takeError());
      return;
    }
    std::vector<Known> operands = operandsOf(node);
    const ConverterEntry* converter = findConverter(node);
    // Operands that failed make this node fail too, silently: its own problem, if it has one, is
    // that nothing knows its op.
    bool complete = true;
    for (auto [i, operand] : llvm::enumerate(operands))
      complete &= !node.hasInput(i) || operand.isKnown();
    if (complete) {
      Result<bool> folded = tryFold(node, operands);
      if (!folded.ok())
        return fail(node, folded.takeError());
      if (*folded)
        return;
    }
    if (!converter && !complete && isOnlyFolded(node))
      return;
    if (!converter)
      return fail(node, Error::badInput("{}: {}", node.shown(), unsupported(node)));
    if (holdsFoldedNorm(node))
      return fail(node, Error::badInput(
                            "{}: the exporter folded a batch norm into its weights, which are no "
                            "parameters of the source then: export with torch.onnx.export(..., "
                            "dynamo=True, optimize=False)",
                            node.shown()));
    if (!complete)
      return;
    std::string path = pathOf(node);
    Conversion conversion(node, builder_, locationOf(node),
                          builder_.getStrArrayAttr(ArrayRef<StringRef>(StringRef(path))),
                          std::move(operands));
    conversion.trainingMode = recipe_.model.mode == "train";
    conversion.fromPyTorch = graph_.fromPyTorch();
    conversion.randomStream = [this, &path] { return randomStream(path, randomOrdinals_[path]++); };
    conversion.paddingOf = [this, &node](Value table) { return paddingOf(node, table); };
    if (conversion.results.empty())
      return;
    Status status = converter->convert(conversion);
    if (!status.ok())
      return fail(node, status.takeError());
    if (conversion.sequenceResult)
      values_[node.outputs[0]].sequence = std::move(conversion.sequenceResult);
    for (auto& [i, nothing] : conversion.empty)
      values_[node.outputs[i]].host = std::move(nothing);
    for (auto [output, value] : llvm::zip_equal(node.outputs, conversion.results)) {
      if (output.empty() || !value)
        continue;
      if (llvm::is_contained(ir::tensorType(value).getShape(), 0))
        return fail(node, Error::badInput("{}: its result is empty", node.shown()));
      values_[output].value = value;
    }
  }

  /// Exporters write an If where they do not know an extent or a rank that the model has: the
  /// branch that it takes stands in its place.
  Status convertIf(const Node& node) {
    const std::vector<Known> operands = operandsOf(node);
    if (!operands.front().isKnown())
      return {}; // its operand has failed
    const bool condition = TITAN_TRY(controlOf(node, operands.front(), "its condition")) != 0;
    Subgraph branch = TITAN_TRY(branchOf(node, condition));
    TITAN_TRY(convertSubgraph(branch));
    for (auto [output, inner] : llvm::zip_equal(node.outputs, branch.outputs))
      if (auto value = values_.find(inner); value != values_.end() && !output.empty())
        values_[output] = value->second;
    return {};
  }

  Status convertSubgraph(const Subgraph& graph) {
    for (const Node& inner : graph.nodes) {
      for (const std::string& output : inner.outputs)
        TITAN_TRY(reserve(inner, output));
      const bool isConstant = inner.opType == "Constant" && inner.outputs.size() == 1;
      if (std::optional<::onnx::TensorProto> constant =
              isConstant ? constantValue(inner) : std::nullopt) {
        const Tensor tensor = TITAN_TRY(takeTensor(*constant, inner.shown()));
        values_[inner.outputs.front()].host = TITAN_TRY(toHost(tensor));
        continue;
      }
      convert(inner);
    }
    return {};
  }

  /// Makes `name`, which a graph within `node` gives, a value that is not computed yet.
  Status reserve(const Node& node, const std::string& name) {
    if (name.empty())
      return {};
    if (values_.contains(name) && !ofSubgraphs_.contains(name))
      return Error::badInput("{}: '{}' is produced more than once", node.shown(), printable(name));
    ofSubgraphs_.insert(name);
    values_[name] = {};
    return {};
  }

  /// Its body stands there once for each iteration. Exporters write one where PyTorch has a loop
  /// over bags of indices (EmbeddingBag), or a program in TorchScript.
  Status convertLoop(const Node& node) {
    std::vector<Known> operands = operandsOf(node);
    for (auto [i, operand] : llvm::enumerate(operands))
      if (node.hasInput(i) && !operand.isKnown())
        return {}; // it has failed
    const Subgraph body = TITAN_TRY(bodyOf(node));
    int64_t iterations = INT64_MAX;
    if (node.hasInput(0))
      iterations = TITAN_TRY(controlOf(node, operands[0], "its number of iterations"));
    bool goesOn = !node.hasInput(1) || TITAN_TRY(controlOf(node, operands[1], "its condition"));
    std::vector<Known> carried(operands.begin() + kLoopControls,
                               operands.begin() + static_cast<long>(body.inputs.size()));
    std::vector<std::vector<Known>> scanned(node.outputs.size() - carried.size());
    for (int64_t i = 0; goesOn && i < iterations; ++i) {
      std::optional<std::vector<Known>> results = TITAN_TRY(iterate(node, body, i, carried));
      if (!results)
        return {};
      goesOn = TITAN_TRY(controlOf(node, results->front(), "its condition"));
      auto next = results->begin() + 1;
      std::copy_n(next, carried.size(), carried.begin());
      next += static_cast<long>(carried.size());
      for (std::vector<Known>& values : scanned)
        values.push_back(*next++);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (!node.outputs[i].empty())
        values_[node.outputs[i]] =
            i < carried.size() ? carried[i] : TITAN_TRY(stack(node, scanned[i - carried.size()]));
    return {};
  }

  static Result<int64_t> controlOf(const Node& node, const Known& value, const char* what) {
    if (!value.host || value.host->size() != 1)
      return Error::badInput(
          "{}: {} is computed by the model: only one that follows from shapes is "
          "supported",
          node.shown(), what);
    return value.host->integer(0);
  }

  /// What iteration `i` of the body gives. Nothing: a node of it has failed.
  Result<std::optional<std::vector<Known>>> iterate(const Node& node, const Subgraph& body,
                                                    int64_t i, const std::vector<Known>& carried) {
    unrolled_ += body.nodes.size() + 1;
    if (unrolled_ > kMostNodes)
      return Error::badInput("{}: its iterations have more than {} nodes", node.shown(),
                             kMostNodes);
    for (const std::string& input : body.inputs)
      TITAN_TRY(reserve(node, input));
    values_[body.inputs[0]].host = HostTensor::scalar(i);
    values_[body.inputs[1]].host = HostTensor::scalar(1);
    values_[body.inputs[1]].host->dtype = DType::Bool;
    for (size_t k = 0; k < carried.size(); ++k)
      values_[body.inputs[kLoopControls + k]] = carried[k];
    const size_t problems = problems_.size();
    TITAN_TRY(convertSubgraph(body));
    std::vector<Known> results;
    for (const std::string& output : body.outputs)
      results.push_back(values_[output]);
    const bool complete = problems_.size() == problems &&
                          llvm::all_of(results, [](const Known& known) { return known.isKnown(); });
    return complete ? std::optional(std::move(results)) : std::nullopt;
  }

  /// `rows`, one of each iteration, along a new first dimension.
  Result<Known> stack(const Node& node, std::vector<Known> rows) {
    if (rows.empty())
      return Error::badInput("{}: it has no iteration", node.shown());
    Node join;
    join.name = node.name;
    join.opType = node.opType;
    join.inputs.assign(rows.size(), "a result of its body");
    std::string path = pathOf(node);
    Conversion conversion(join, builder_, locationOf(node),
                          builder_.getStrArrayAttr(ArrayRef<StringRef>(StringRef(path))),
                          std::move(rows));
    std::vector<Value> values;
    for (size_t i = 0; i < conversion.count(); ++i)
      values.push_back(TITAN_TRY(conversion.operand(i)));
    Known found;
    found.value = TITAN_TRY(stacked(conversion, values));
    return found;
  }

  /// What the names file says of the table goes before what the source said of the node.
  std::optional<int64_t> paddingOf(const Node& node, Value table) {
    if (auto told = paddings_.find(table); told != paddings_.end()) {
      told->second.isUsed = true;
      return told->second.tensor->paddingIndex;
    }
    std::optional<int64_t> index = scopeOf(node).paddingIndex;
    return index && *index < ir::tensorType(table).getDimSize(0) ? index : std::nullopt;
  }

  Status checkPaddings() {
    for (const NamedTensor& tensor : names_.tensors)
      if (tensor.paddingIndex && !llvm::any_of(paddings_, [&](const auto& entry) {
            return entry.second.tensor == &tensor && entry.second.isUsed;
          }))
        return Error::badInput("names file: '{}': padding_idx = {}, but the model looks no rows of "
                               "it up",
                               printable(tensor.initializer), *tensor.paddingIndex);
    return {};
  }

  /// Evaluates the node where all that it reads is known. Shape and Size read only the shape of a
  /// value, CastLike the type of its second operand.
  Result<bool> tryFold(const Node& node, ArrayRef<Known> operands) {
    bool ofShape = node.domain.empty() && (node.opType == "Shape" || node.opType == "Size");
    bool ofType = node.domain.empty() && node.opType == "CastLike";
    std::vector<HostTensor> types;
    types.reserve(operands.size());
    HostInputs inputs;
    for (auto [i, operand] : llvm::enumerate(operands)) {
      if (!node.hasInput(i)) {
        inputs.push_back(nullptr);
      } else if (operand.host) {
        inputs.push_back(&*operand.host);
      } else if (std::optional<HostTensor> type =
                     ofShape || (ofType && i == 1) ? typeOf(operand) : std::nullopt) {
        types.push_back(std::move(*type));
        inputs.push_back(&types.back());
      } else {
        return false;
      }
    }
    if (inputs.empty())
      return false;
    int64_t largest = folded_ < kMostFolded ? kLargestFolded : kAlwaysFolded;
    std::optional<HostOutputs> outputs = TITAN_TRY(fold(node, inputs, largest));
    if (!outputs)
      return false;
    for (const HostTensor& output : *outputs)
      folded_ += output.size();
    for (auto [output, value] : llvm::zip(node.outputs, *outputs))
      if (!output.empty())
        values_[output].host = std::move(value);
    return true;
  }

  /// A tensor of the type and shape of `known`, without its elements. Nothing: it is a sequence.
  static std::optional<HostTensor> typeOf(const Known& known) {
    if (known.file)
      return HostTensor::empty(known.file->dtype, known.file->shape);
    if (!known.value)
      return std::nullopt;
    std::optional<DType> dtype = dtypeOf(ir::tensorType(known.value).getElementType());
    if (!dtype)
      return std::nullopt;
    return HostTensor::empty(*dtype, Conversion::shapeOf(known.value));
  }

  static std::string unsupported(const Node& node) {
    if (!node.domain.empty())
      return fmt::format("ops of domain '{}' are not supported", printable(node.domain));
    for (const ConverterEntry& entry : converterTable())
      if (node.opType == entry.opType)
        return fmt::format("opset {} is older than {}, the oldest that is supported", node.opset,
                           entry.since);
    return "the op is not supported";
  }

  Location locationOf(const Node& node) {
    return NameLoc::get(builder_.getStringAttr(
        node.name.empty() && !node.outputs.empty() ? node.outputs.front() : node.name));
  }

  void fail(const Node& node, const Error& error) {
    const Scope scope = scopeOf(node);
    std::string problem = error.message();
    if (!scope.module.empty())
      problem += ", in module '" + printable(scope.module) + "'";
    if (scope.target.starts_with("aten.embedding_bag."))
      problem += "; where offsets are an input, bags have no size that is known: export with "
                 "indices of shape [bags, size], and padding_idx for what a bag lacks";
    problems_.push_back(std::move(problem));
  }

  Status reportProblems() {
    if (problems_.empty())
      return {};
    if (problems_.size() == 1)
      return Error::badInput("{}", problems_.front());
    std::string list = fmt::format("{} nodes cannot be imported:", problems_.size());
    constexpr size_t kMostListed = 50;
    for (size_t i = 0; i < std::min(problems_.size(), kMostListed); ++i)
      list += "\n  " + problems_[i];
    if (problems_.size() > kMostListed)
      list += fmt::format("\n  and {} more", problems_.size() - kMostListed);
    return Error::badInput("{}", list);
  }

  Status finishFunction() {
    SmallVector<Value> results;
    SmallVector<Type> types;
    for (const Port& output : graph_.outputs) {
      Node use;
      use.name = output.name;
      use.opType = "output";
      use.inputs = {output.name};
      Conversion conversion(use, builder_, function_.getLoc(), ArrayAttr(), operandsOf(use));
      results.push_back(TITAN_TRY(conversion.operand(0)));
      types.push_back(results.back().getType());
    }
    func::ReturnOp::create(builder_, function_.getLoc(), results);
    function_.setFunctionType(
        builder_.getFunctionType(function_.getFunctionType().getInputs(), types));
    for (auto [i, output] : llvm::enumerate(graph_.outputs))
      function_.setResultAttr(i, ir::tag::output, builder_.getStringAttr(output.name));
    return {};
  }

  /// Transpositions that contractions absorbed, outputs that nobody reads, constants of the
  /// exported batch.
  void eraseDeadOps() {
    SmallVector<Operation*> ops =
        llvm::to_vector(llvm::make_pointer_range(function_.getBody().front()));
    for (Operation* op : llvm::reverse(ops))
      if (isOpTriviallyDead(op))
        op->erase();
  }

  /// Whatever the verifier finds here is ours: bad models are refused before.
  Status verifyModule() {
    return internally(context_, "the imported module is not valid",
                      [&] { return verify(*module_); });
  }

  /// Tells the raise passes what buffers hold in the file, so that a mask among them is known as
  /// one. States stay states.
  Status noteBuffers() {
    constexpr int64_t kLargest = int64_t(1) << 24;
    for (auto [i, state] : llvm::enumerate(names_.states)) {
      const NamedTensor& tensor = names_.tensors[state.tensor];
      const Tensor& file = graph_.initializers.at(tensor.initializer);
      int64_t count = elementCount(file.shape);
      if (tensor.kind != TensorKind::Buffer || tensor.role == Role::Statistic ||
          !tensor.pieces.empty() || !file.missing.empty() || count == 0 || count > kLargest)
        continue;
      std::string bytes = TITAN_TRY(file.read());
      function_.setArgAttr(i, kInitialValue,
                           denseFromBytes(&context_, file.dtype, file.shape, bytes));
    }
    return {};
  }

  Status raise() {
    PassManager passes(&context_);
    if (instrument_)
      instrument_(passes);
    addImportPasses(passes);
    return internally(context_, "raising failed",
                      [&] { return failed(verify(*module_)) ? failure() : passes.run(*module_); });
  }

  MLIRContext& context_;
  const Graph& graph_;
  const NameTable& names_;
  const Recipe& recipe_;
  const std::function<void(PassManager&)>& instrument_;
  OpBuilder builder_;
  OwningOpRef<ModuleOp> module_;
  func::FuncOp function_;
  std::map<std::string, Known> values_;
  std::set<std::string> ofSubgraphs_; ///< values that a graph within a node gives
  size_t unrolled_ = 0;               ///< nodes of iterations
  std::map<std::string, uint64_t> randomOrdinals_;
  struct Padding {
    const NamedTensor* tensor;
    bool isUsed = false;
  };
  llvm::DenseMap<Value, Padding> paddings_; ///< of the names file, by table
  std::vector<std::string> problems_;
  int64_t folded_ = 0; ///< elements
};

} // namespace

Result<NameOverrides> nameOverrides(const Recipe& recipe, const ImportOptions& options) {
  const std::string& path = options.namesFile.empty() ? recipe.model.names : options.namesFile;
  if (path.empty())
    return NameOverrides();
  return readNamesFile(path);
}

Result<Graph> readModel(const std::string& path, const Recipe& recipe,
                        const ImportOptions& options) {
  Graph graph = TITAN_TRY(readGraph(path, {options.weightsDirectory}));
  NameOverrides overrides = TITAN_TRY(nameOverrides(recipe, options));
  TITAN_TRY(completeMasks(graph, overrides, recipe.model.init == "fresh"));
  return graph;
}

Result<OwningOpRef<ModuleOp>> importGraph(MLIRContext& context, const Graph& graph,
                                          const NameTable& names, const Recipe& recipe,
                                          const std::function<void(PassManager&)>& instrument) {
  return Importer(context, graph, names, recipe, instrument).run();
}

Result<OwningOpRef<ModuleOp>> importOnnx(MLIRContext& context, const std::string& path,
                                         const Recipe& recipe, const ImportOptions& options,
                                         ImportReport& report) {
  Graph graph = TITAN_TRY(readModel(path, recipe, options));
  NameOverrides overrides = TITAN_TRY(nameOverrides(recipe, options));
  Result<NameTable> names = nameTensors(graph, overrides);
  if (!names.ok())
    return names.takeError().withContext(path);
  report.notes = notesOf(graph, *names, recipe);
  if (options.strictNames)
    TITAN_TRY(requireExact(names->account));
  Result<OwningOpRef<ModuleOp>> module =
      importGraph(context, graph, *names, recipe, options.instrument);
  if (!module.ok())
    return module.takeError().withContext(path);
  llvm::append_range(report.notes, notesOfModule(**module));
  return module;
}

} // namespace titan::frontend
