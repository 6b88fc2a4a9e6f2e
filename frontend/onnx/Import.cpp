#include "frontend/onnx/Import.h"
#include "frontend/Internally.h"
#include "frontend/onnx/ReadGraph.h"

#include "frontend/onnx/convert/AsInFile.h"
#include "frontend/onnx/convert/InputDims.h"
#include "frontend/onnx/convert/NodeConverter.h"
#include "frontend/onnx/convert/RebindBatch.h"
#include "frontend/onnx/convert/States.h"
#include "frontend/onnx/name/MissingMasks.h"
#include "frontend/onnx/name/Values.h"
#include "frontend/raise/Evaluate.h"
#include "frontend/raise/Passes.h"

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
        builder_(&context), nodes_(graph, names, recipe, builder_) {
    context.loadDialect<func::FuncDialect, ir::TitanDialect>();
  }

  Result<OwningOpRef<ModuleOp>> run() {
    BoundInputs inputs = TITAN_TRY(bindInputs(graph_, recipe_));
    createModule();
    std::vector<ir::StateOp> states = TITAN_TRY(addStates(*module_, graph_, names_, recipe_));
    TITAN_TRY(createFunction(states, inputs));
    TITAN_TRY(addConstants());
    for (const Node& node : graph_.nodes)
      nodes_.convert(node);
    TITAN_TRY(nodes_.check());
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
      nodes_.valueOf(tensor.initializer).value = inFile;
      if (tensor.paddingIndex)
        nodes_.addPadding(inFile, tensor);
      return {};
    };
    for (bool isCopy : {false, true}) // second readings last
      for (const NamedTensor& tensor : names_.tensors)
        if (tensor.kind != TensorKind::Constant && tensor.isCopy == isCopy)
          TITAN_TRY(read(tensor));
    for (const BoundInput& input : inputs.inputs)
      nodes_.valueOf(input.name).value = body->getArgument(next++);
    return {};
  }

  Status addConstants() {
    for (const NamedTensor& tensor : names_.tensors) {
      if (tensor.kind == TensorKind::Buffer)
        TITAN_TRY(addMask(tensor));
      if (tensor.kind != TensorKind::Constant)
        continue;
      const Tensor& file = graph_.initializers.at(tensor.initializer);
      Known& known = nodes_.valueOf(tensor.initializer);
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
    nodes_.valueOf(tensor.initializer).host = TITAN_TRY(toHost(file));
    return {};
  }

  Status finishFunction() {
    SmallVector<Value> results;
    SmallVector<Type> types;
    for (const Port& output : graph_.outputs) {
      Node use;
      use.name = output.name;
      use.opType = "output";
      use.inputs = {output.name};
      Conversion conversion(use, builder_, function_.getLoc(), ArrayAttr(), nodes_.operandsOf(use));
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
  NodeConverter nodes_;
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
