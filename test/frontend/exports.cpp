// Every export of a PyTorch module computes what the module computes: imports DIR/NAME-*.onnx,
// reads its states where the module says they are, and compares the reference interpreter's outputs
// with DIR/NAME.io. The recorded batch differs from the exported one, so that baked batches are
// rewritten; symbolic dimensions are bound to the recording's. Exports with active dropout are left
// out.
//
//   exports-equal-pytorch DIR [TEXT, which names must contain]
#include "dialects/Titan/Titan.h"
#include "frontend/onnx/Import.h"
#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/convert/Conversion.h"
#include "test/frontend/Recorded.h"

#include "llvm/Support/raw_ostream.h"

#include <map>
#include <set>

namespace fs = std::filesystem;
using namespace titan;
using namespace titan::frontend;

namespace {

Shape toShape(llvm::ArrayRef<int64_t> values) { return Shape(values.begin(), values.end()); }

size_t rowMajor(const Shape& index, const Shape& shape) {
  int64_t at = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    at = at * shape[d] + index[d];
  return static_cast<size_t>(at);
}

/// The value of `state`: the bytes of its file init, from where its sources say.
Result<interpreter::Tensor> initialValue(ir::StateOp state, const fs::path& directory) {
  auto init = mlir::dyn_cast<ir::FileInitAttr>(state.getInit());
  if (!init)
    return Error::badInput("'{}' has no file init", state.getName().str());
  mlir::RankedTensorType type = state.getTensorType();
  Tensor tensor;
  tensor.name = state.getName().str();
  tensor.dtype = dtypeOf(type.getElementType()).value_or(DType::F32);
  tensor.shape = toShape(type.getShape());
  std::vector<TensorSource> sources;
  if (std::optional<mlir::ArrayAttr> list = state.getSources())
    for (auto source : list->getAsRange<ir::SourceAttr>())
      sources.push_back({source.getInitializer().str(),
                         {toShape(source.getAt()), toShape(source.getFrom()),
                          toShape(source.getExtent()), toShape(source.getDims())}});
  if (sources.empty())
    sources.push_back({tensor.name, {}});
  const std::vector<std::string> names = initializersOf(sources);
  const auto element = static_cast<size_t>(byteSize(tensor.dtype));
  auto bytes = std::make_shared<std::string>(tensor.byteCount(), '\0');
  for (const TensorSource& source : sources) {
    ir::StoredRangeAttr range =
        init.getStored()[llvm::find(names, source.initializer) - names.begin()];
    std::ifstream file(directory / range.getPath().str(), std::ios::binary);
    std::string stored(range.getBytes(), '\0');
    file.seekg(static_cast<std::streamoff>(range.getOffset()));
    file.read(stored.data(), static_cast<std::streamsize>(stored.size()));
    if (!file)
      return Error::badInput("'{}': cannot read {} bytes", tensor.name, range.getBytes());
    const Shape shape = range.getShape().empty() ? tensor.shape : toShape(range.getShape());
    const Piece piece = writtenOut(source.piece, tensor.shape);
    Shape index = piece.at;
    for (int64_t n = 0; n < elementCount(piece.extent); ++n) {
      bytes->replace(element * rowMajor(index, tensor.shape), element, stored,
                     element * rowMajor(elementOf(piece, index), shape), element);
      for (size_t d = index.size(); d-- > 0;) {
        if (++index[d] < piece.at[d] + piece.extent[d])
          break;
        index[d] = piece.at[d];
      }
    }
  }
  tensor.inlineBytes = bytes;
  return toInterpreter(TITAN_TRY(toHost(tensor)), type);
}

/// The tensors FOLDER/NAME_0.pb, by name; `input` may stand for the only one.
std::map<std::string, ::onnx::TensorProto> readRecording(const fs::path& folder) {
  std::map<std::string, ::onnx::TensorProto> tensors;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::string name = entry.path().stem().string();
    if (auto tensor = readTensor(entry.path()))
      tensors[name.substr(0, name.rfind('_'))] = *tensor;
  }
  return tensors;
}

/// The inputs' symbolic dimensions as the recording has them; dimension 0 is the batch.
Result<Recipe> recipeFor(const Graph& graph,
                         const std::map<std::string, ::onnx::TensorProto>& recording) {
  Recipe recipe;
  for (const Port& input : graph.inputs) {
    auto tensor = recording.find(
        graph.inputs.size() == 1 && !recording.contains(input.name) ? "input" : input.name);
    if (tensor == recording.end() || !input.dims ||
        tensor->second.dims_size() != static_cast<int>(input.dims->size()))
      return Error::badInput("no recording of input '{}'", input.name);
    for (int d = 1; d < tensor->second.dims_size(); ++d)
      if (const std::string& symbol = (*input.dims)[d].symbol; !symbol.empty())
        recipe.model.dims[symbol] = tensor->second.dims(d);
    recipe.batch.micro = recipe.batch.global = tensor->second.dims(0);
  }
  return recipe;
}

bool isRandom(mlir::Operation* op) {
  if (auto attention = mlir::dyn_cast<ir::AttentionOp>(op))
    return attention.getP().convertToDouble() > 0;
  return mlir::isa<ir::DropoutOp>(op);
}

/// True: compared. False: the export has dropout.
Result<bool> check(mlir::MLIRContext& context, const fs::path& model, const fs::path& folder) {
  auto recording = readRecording(folder);
  Graph graph = TITAN_TRY(readGraph(model.string()));
  Recipe recipe = TITAN_TRY(recipeFor(graph, recording));
  NameTable names = TITAN_TRY(nameTensors(graph));
  auto module = TITAN_TRY(importGraph(context, graph, names, recipe));
  auto function = module->lookupSymbol<mlir::func::FuncOp>("model");
  if (llvm::any_of(function.getOps(), [](mlir::Operation& op) { return isRandom(&op); }))
    return false;
  interpreter::Arguments arguments;
  for (auto state : module->getOps<ir::StateOp>())
    arguments.states[state.getSymName().str()] =
        TITAN_TRY(initialValue(state, model.parent_path()));
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto tag = function.getArgAttrOfType<mlir::StringAttr>(i, ir::tag::input);
    if (!tag)
      continue;
    auto recorded = recording.find(tag.str());
    ::onnx::TensorProto proto =
        recorded != recording.end() ? recorded->second : recording.at("input");
    HostTensor x = TITAN_TRY(toHost(TITAN_TRY(takeTensor(proto, tag.str()))));
    arguments.inputs[tag.str()] =
        toInterpreter(x, mlir::cast<mlir::RankedTensorType>(function.getArgument(i).getType()));
  }
  auto results = interpreter::run(function, arguments, interpreter::Engine::F32);
  if (mlir::failed(results))
    return Error::internal("the interpreter failed");
  std::string name = graph.outputs.front().name, detail;
  if (!compare(results->outputs[name], recording.at("output"), detail))
    return Error::internal("{}", detail);
  return true;
}

/// The recording of `model`: DIR/a-b.io for DIR/a-b-way.onnx.
std::optional<fs::path> recordingOf(const fs::path& model) {
  std::string name = model.stem().string();
  for (size_t end = name.rfind('-'); end != std::string::npos && end > 0;
       end = name.rfind('-', end - 1))
    if (fs::path folder = model.parent_path() / (name.substr(0, end) + ".io"); fs::exists(folder))
      return folder;
  return std::nullopt;
}

} // namespace

int main(int argc, char** argv) {
  mlir::DialectRegistry registry;
  interpreter::registerInterpreterModels(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  std::string text = argc > 2 ? argv[2] : "";
  std::set<fs::path> models;
  for (const auto& entry : fs::directory_iterator(argc > 1 ? argv[1] : "."))
    if (entry.path().extension() == ".onnx" && recordingOf(entry.path()) &&
        entry.path().filename().string().find(text) != std::string::npos)
      models.insert(entry.path());
  int failed = 0, random = 0;
  for (const fs::path& model : models) {
    Result<bool> compared = check(context, model, *recordingOf(model));
    failed += !compared.ok();
    random += compared.ok() && !*compared;
    llvm::outs() << (!compared.ok() ? "FAIL "
                     : *compared    ? "pass "
                                    : "skip ")
                 << model.filename().string()
                 << (compared.ok() ? *compared ? "" : ": has dropout"
                                   : ": " + compared.error().message())
                 << "\n";
  }
  llvm::outs() << models.size() - failed - random << " passed, " << random
               << " left out for their dropout, " << failed << " failed\n";
  return failed == 0 && models.size() > static_cast<size_t>(random) ? 0 : 1;
}
