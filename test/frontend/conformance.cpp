// ONNX's backend suite: imports every node case that is found, runs it in the reference interpreter
// and compares with the recorded outputs.
//
//   onnx-conformance DATA [--expect FILE] [--filter GLOB] [--verbose]
//
// DATA holds one folder a case: model.onnx and test_data_set_0/{input,output}_N.pb
// (libonnx-testdata: /usr/share/libonnx-testdata/data/node). A case whose model is refused counts
// as unsupported. A wrong result is a failure, and so is a case of FILE (one name a line) that does
// not pass. Exit code 77: there is no DATA.
#include "compiler/Interpreter/Interpreter.h"
#include "frontend/onnx/Import.h"
#include "test/frontend/Recorded.h"

#include "llvm/Support/raw_ostream.h"

#include <filesystem>
#include <fstream>
#include <set>

namespace fs = std::filesystem;
using namespace titan;
using namespace titan::frontend;

namespace {

enum class Outcome { Pass, Unsupported, Wrong };

/// Some recordings hold bfloat16 as uint16: they do not fit their model.
bool fits(const ::onnx::TensorProto& tensor, const ::onnx::ValueInfoProto& info) {
  return tensor.data_type() == info.type().tensor_type().elem_type();
}

struct Case {
  std::string name;
  ::onnx::ModelProto model;
  std::vector<::onnx::TensorProto> inputs, outputs;
  std::string detail;
};

bool load(const fs::path& folder, Case& test) {
  test.name = folder.filename().string();
  std::ifstream file(folder / "model.onnx", std::ios::binary);
  if (!file || !test.model.ParseFromIstream(&file))
    return false;
  for (int i = 0; i < test.model.graph().input_size(); ++i) {
    auto tensor = readTensor(folder / "test_data_set_0" / fmt::format("input_{}.pb", i));
    if (!tensor || !fits(*tensor, test.model.graph().input(i)))
      return false;
    tensor->set_name(test.model.graph().input(i).name());
    test.inputs.push_back(std::move(*tensor));
  }
  for (int i = 0; i < test.model.graph().output_size(); ++i) {
    auto tensor = readTensor(folder / "test_data_set_0" / fmt::format("output_{}.pb", i));
    if (!tensor || !fits(*tensor, test.model.graph().output(i)))
      return false;
    test.outputs.push_back(std::move(*tensor));
  }
  return true;
}

/// Imports with the inputs from `firstConstant` on as initializers: shapes, axes and bounds must be
/// known.
Outcome run(mlir::MLIRContext& context, Case& test, int firstConstant) {
  ::onnx::ModelProto model = test.model;
  model.mutable_graph()->clear_input();
  for (int i = 0; i < test.model.graph().input_size(); ++i) {
    if (i < firstConstant)
      *model.mutable_graph()->add_input() = test.model.graph().input(i);
    else
      *model.mutable_graph()->add_initializer() = test.inputs[i];
  }
  Result<Graph> graph = parseGraph(model.SerializeAsString(), test.name, "");
  if (!graph.ok()) {
    test.detail = graph.error().message();
    return Outcome::Unsupported;
  }
  // Constants, not parameters: the suite is about ops.
  NameTable names;
  for (const std::string& initializer : graph->initializerOrder) {
    NamedTensor tensor;
    tensor.initializer = tensor.name = initializer;
    names.tensors.push_back(tensor);
  }
  Recipe recipe;
  if (!graph->inputs.empty() && graph->inputs[0].dims && !graph->inputs[0].dims->empty())
    recipe.batch.micro = graph->inputs[0].dims->front().extent.value_or(1);
  auto module = importGraph(context, *graph, names, recipe);
  if (!module.ok()) {
    test.detail = module.error().message();
    return module.error().code() == ErrorCode::BadInput ? Outcome::Unsupported : Outcome::Wrong;
  }
  auto function = (*module)->lookupSymbol<mlir::func::FuncOp>("model");
  llvm::SmallVector<interpreter::Tensor> arguments;
  for (int i = 0; i < std::min<int>(firstConstant, static_cast<int>(test.inputs.size())); ++i) {
    ::onnx::TensorProto proto = test.inputs[i];
    HostTensor host = toHost(takeTensor(proto, "input").take()).take();
    arguments.push_back(
        toInterpreter(host, mlir::cast<mlir::RankedTensorType>(function.getArgumentTypes()[i])));
  }
  auto results = interpreter::run(function, arguments, interpreter::Engine::F32);
  if (mlir::failed(results)) {
    test.detail = "the interpreter failed";
    return Outcome::Wrong;
  }
  for (auto [actual, expected] : llvm::zip_equal(*results, test.outputs))
    if (!compare(actual, expected, test.detail))
      return Outcome::Wrong;
  return Outcome::Pass;
}

/// Tries the inputs as inputs first, then ever more of them as constants.
Outcome run(mlir::MLIRContext& context, Case& test) {
  Outcome outcome = Outcome::Unsupported;
  for (int constants = static_cast<int>(test.inputs.size());
       constants >= 0 && outcome == Outcome::Unsupported; --constants)
    outcome = run(context, test, constants);
  return outcome;
}

} // namespace

int main(int argc, char** argv) {
  fs::path data;
  std::string filter = "*";
  std::set<std::string> expected;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--expect" && i + 1 < argc) {
      std::ifstream lines(argv[++i]);
      for (std::string line; std::getline(lines, line);)
        expected.insert(line);
    } else if (argument == "--filter" && i + 1 < argc) {
      filter = argv[++i];
    } else if (argument == "--verbose") {
      verbose = true;
    } else {
      data = argument;
    }
  }
  if (!fs::is_directory(data)) {
    llvm::outs() << "skipped: no test data in '" << data.string() << "' (libonnx-testdata)\n";
    return 77;
  }
  mlir::DialectRegistry registry;
  interpreter::registerInterpreterModels(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  int passed = 0, unsupported = 0, wrong = 0;
  std::set<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(data))
    folders.insert(entry.path());
  for (const fs::path& folder : folders) {
    Case test;
    // What training dropout drops depends on the generator.
    if (!matchesGlob(filter, folder.filename().string()) || !load(folder, test) ||
        matchesGlob("test_training_dropout*", test.name))
      continue;
    Outcome outcome = run(context, test);
    bool regression = outcome == Outcome::Unsupported && expected.contains(test.name);
    passed += outcome == Outcome::Pass;
    unsupported += outcome == Outcome::Unsupported && !regression;
    wrong += outcome == Outcome::Wrong || regression;
    if (outcome == Outcome::Wrong || regression)
      llvm::outs() << "FAIL " << test.name << ": " << test.detail << "\n";
    else if (verbose)
      llvm::outs() << (outcome == Outcome::Pass ? "pass " : "unsupported ") << test.name
                   << (outcome == Outcome::Pass ? "" : ": " + test.detail) << "\n";
  }
  llvm::outs() << passed << " passed, " << unsupported << " unsupported, " << wrong << " failed\n";
  return wrong == 0 ? 0 : 1;
}
