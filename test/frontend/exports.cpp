// Every export of a PyTorch module computes what the module computes: imports
// DIR/NAME-*-eval*.onnx, reads its states where the module says they are, and compares the
// reference interpreter's outputs with DIR/NAME.io. The recorded batch differs from the exported
// one, so that baked batches are rewritten.
//
//   exports-equal-pytorch DIR
#include "dialects/Titan/Titan.h"
#include "frontend/onnx/Import.h"
#include "test/frontend/Recorded.h"

#include "llvm/Support/raw_ostream.h"

#include <set>

namespace fs = std::filesystem;
using namespace titan;
using namespace titan::frontend;

namespace {

/// The value of `state`: the bytes of its file init, permuted from the stored layout.
Result<interpreter::Tensor> initialValue(ir::StateOp state, const fs::path& directory) {
  auto init = mlir::dyn_cast<ir::FileInitAttr>(state.getInit());
  if (!init)
    return Error::badInput("'{}' has no file init", state.getName().str());
  std::ifstream file(directory / init.getPath().str(), std::ios::binary);
  auto bytes = std::make_shared<std::string>(init.getBytes(), '\0');
  file.seekg(static_cast<std::streamoff>(init.getOffset()));
  file.read(bytes->data(), static_cast<std::streamsize>(bytes->size()));
  if (!file)
    return Error::badInput("'{}': cannot read {} bytes", state.getName().str(), init.getBytes());

  mlir::RankedTensorType type = state.getTensorType();
  int64_t rank = type.getRank();
  llvm::SmallVector<int64_t> permutation(init.getPermutation());
  if (permutation.empty())
    permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  Tensor stored;
  stored.name = state.getName().str();
  stored.shape.resize(rank);
  for (int64_t d = 0; d < rank; ++d)
    stored.shape[permutation[d]] = type.getDimSize(d);
  stored.inlineBytes = bytes;
  HostTensor host = TITAN_TRY(toHost(stored));
  interpreter::Tensor from =
      toInterpreter(host, mlir::RankedTensorType::get(stored.shape, type.getElementType()));
  interpreter::Tensor value(type);
  interpreter::Walk walk;
  llvm::SmallVector<int64_t> strides = from.strides();
  for (int64_t d = 0; d < rank; ++d)
    walk.strides.push_back(strides[permutation[d]]);
  interpreter::copyElements(type.getShape(), from, walk, value, interpreter::wholeWalk(value));
  return value;
}

Status check(mlir::MLIRContext& context, const fs::path& model, const fs::path& recording) {
  auto input = readTensor(recording / "input_0.pb"), output = readTensor(recording / "output_0.pb");
  if (!input || !output)
    return Error::badInput("no recording in '{}'", recording.string());
  Recipe recipe;
  recipe.batch.micro = recipe.batch.global = input->dims(0);
  ImportReport report;
  auto module = TITAN_TRY(importOnnx(context, model.string(), recipe, {}, report));
  interpreter::Arguments arguments;
  for (auto state : module->getOps<ir::StateOp>())
    arguments.states[state.getSymName().str()] =
        TITAN_TRY(initialValue(state, model.parent_path()));
  auto function = module->lookupSymbol<mlir::func::FuncOp>("model");
  HostTensor x = TITAN_TRY(toHost(TITAN_TRY(takeTensor(*input, "input"))));
  arguments.inputs["x"] =
      toInterpreter(x, mlir::cast<mlir::RankedTensorType>(function.getArgumentTypes().back()));
  auto results = interpreter::run(function, arguments, interpreter::Engine::F32);
  if (mlir::failed(results))
    return Error::internal("the interpreter failed");
  std::string detail;
  if (!compare(results->outputs["y"], *output, detail))
    return Error::internal("{}", detail);
  return {};
}

} // namespace

int main(int argc, char** argv) {
  mlir::DialectRegistry registry;
  interpreter::registerInterpreterModels(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  std::set<fs::path> models;
  for (const auto& entry : fs::directory_iterator(argc > 1 ? argv[1] : "."))
    if (entry.path().extension() == ".onnx" &&
        entry.path().filename().string().find("-eval") != std::string::npos)
      models.insert(entry.path());
  int failed = 0;
  for (const fs::path& model : models) {
    std::string name = model.filename().string();
    fs::path recording = model.parent_path() / (name.substr(0, name.find('-')) + ".io");
    Status status = check(context, model, recording);
    failed += !status.ok();
    llvm::outs() << (status.ok() ? "pass " : "FAIL ") << name
                 << (status.ok() ? "" : ": " + status.error().message()) << "\n";
  }
  return failed == 0 && !models.empty() ? 0 : 1;
}
