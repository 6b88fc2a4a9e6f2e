// ONNX's backend suite: imports every case that is found, runs it in the reference interpreter and
// compares with the recorded outputs.
//
//   onnx-conformance DATA... [--expect FILE] [--filter GLOB] [--verbose]
//
// DATA holds one folder a case: model.onnx and test_data_set_0/{input,output}_N.pb, inputs that the
// model has itself (weights) left out (libonnx-testdata: /usr/share/libonnx-testdata/data/node, and
// pytorch-converted, pytorch-operator, simple beside it). A case whose model is refused counts
// as unsupported, one that cannot be read as unreadable. A wrong result is a failure; so is a case
// of FILE (one name a line) that does not pass, whatever the reason, or that DATA does not hold;
// and so is a run without any case. Exit code 77: there is no DATA.
#include "compiler/Interpreter/Interpreter.h"
#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/testing/ImportConstants.h"
#include "test/frontend/RaiseOpset.h"
#include "test/frontend/Recorded.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace fs = std::filesystem;
using namespace titan;
using namespace titan::frontend;

namespace {

enum class Outcome { Pass, Unsupported, Unreadable, Wrong };

const char* nameOf(Outcome outcome) {
  switch (outcome) {
  case Outcome::Pass:
    return "pass";
  case Outcome::Unsupported:
    return "unsupported";
  case Outcome::Unreadable:
    return "unreadable";
  case Outcome::Wrong:
    return "wrong";
  }
  return "";
}

/// Some recordings hold bfloat16 as uint16: they do not fit their model.
bool fits(const ::onnx::TensorProto& tensor, const ::onnx::ValueInfoProto& info) {
  return tensor.data_type() == info.type().tensor_type().elem_type();
}

struct Case {
  std::string name;
  ::onnx::ModelProto model;
  std::vector<::onnx::ValueInfoProto> infos; ///< of inputs that the model does not have itself
  std::vector<::onnx::TensorProto> inputs, outputs;
  std::string detail;
};

/// The recording of one of the model's inputs or outputs; `detail` says why there is none.
std::optional<::onnx::TensorProto> load(const fs::path& file, const ::onnx::ValueInfoProto& info,
                                        std::string& detail) {
  auto tensor = readTensor(file);
  if (!tensor)
    detail = fmt::format("{} is no tensor", file.filename().string());
  else if (!fits(*tensor, info))
    detail = fmt::format("{} has another type than '{}'", file.filename().string(), info.name());
  else
    return tensor;
  return std::nullopt;
}

bool load(const fs::path& folder, Case& test) {
  std::ifstream file(folder / "model.onnx", std::ios::binary);
  if (!file || !test.model.ParseFromIstream(&file)) {
    test.detail = "model.onnx is no model";
    return false;
  }
  raiseOpset(test.model);
  const fs::path recording = folder / "test_data_set_0";
  std::set<std::string> known;
  for (const ::onnx::TensorProto& initializer : test.model.graph().initializer())
    known.insert(initializer.name());
  for (const ::onnx::ValueInfoProto& info : test.model.graph().input())
    if (!known.contains(info.name()))
      test.infos.push_back(info);
  for (size_t i = 0; i < test.infos.size(); ++i) {
    auto tensor = load(recording / fmt::format("input_{}.pb", i), test.infos[i], test.detail);
    if (!tensor)
      return false;
    tensor->set_name(test.infos[i].name());
    test.inputs.push_back(std::move(*tensor));
  }
  for (int i = 0; i < test.model.graph().output_size(); ++i) {
    auto tensor =
        load(recording / fmt::format("output_{}.pb", i), test.model.graph().output(i), test.detail);
    if (!tensor)
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
  for (int i = 0; i < static_cast<int>(test.infos.size()); ++i) {
    if (i < firstConstant)
      *model.mutable_graph()->add_input() = test.infos[i];
    else
      *model.mutable_graph()->add_initializer() = test.inputs[i];
  }
  Result<Graph> graph = parseGraph(model.SerializeAsString(), test.name, "");
  if (!graph.ok()) {
    test.detail = graph.error().message();
    return Outcome::Unsupported;
  }
  auto module = testing::importConstants(context, *graph);
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
  if (results->size() != test.outputs.size()) {
    test.detail = fmt::format("{} results, {} are recorded", results->size(), test.outputs.size());
    return Outcome::Wrong;
  }
  for (auto [actual, expected] : llvm::zip_equal(*results, test.outputs))
    if (!compare(actual, expected, test.detail))
      return Outcome::Wrong;
  return Outcome::Pass;
}

/// Tries the inputs as inputs first, then ever more of them as constants.
Outcome run(mlir::MLIRContext& context, const fs::path& folder, Case& test) {
  if (!load(folder, test))
    return Outcome::Unreadable;
  Outcome outcome = Outcome::Unsupported;
  for (int constants = static_cast<int>(test.inputs.size());
       constants >= 0 && outcome == Outcome::Unsupported; --constants)
    outcome = run(context, test, constants);
  return outcome;
}

struct Options {
  std::vector<fs::path> data;
  std::string filter = "*";
  std::set<std::string> expected; ///< cases that have to pass
  bool verbose = false;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--expect" && i + 1 < argc) {
      std::ifstream lines(argv[++i]);
      for (std::string line; std::getline(lines, line);)
        options.expected.insert(line);
    } else if (argument == "--filter" && i + 1 < argc) {
      options.filter = argv[++i];
    } else if (argument == "--verbose") {
      options.verbose = true;
    } else {
      options.data.push_back(argument);
    }
  }
  return options;
}

/// Every case that the filter lets through; of those that are expected, the ones that DATA holds
/// are taken out of `expected`.
std::vector<fs::path> casesOf(const Options& options, std::set<std::string>& expected) {
  std::set<fs::path> folders;
  for (const fs::path& data : options.data)
    for (const auto& entry : fs::directory_iterator(data)) {
      std::string name = entry.path().filename().string();
      // What is drawn depends on the generator.
      if (!matchesGlob(options.filter, name) || matchesGlob("test_training_dropout*", name) ||
          matchesGlob("test_bernoulli*", name))
        continue;
      folders.insert(entry.path());
      expected.erase(name);
    }
  return {folders.begin(), folders.end()};
}

} // namespace

int main(int argc, char** argv) {
  Options options = parse(argc, argv);
  std::string folders;
  for (const fs::path& data : options.data) {
    if (!fs::is_directory(data)) {
      llvm::outs() << "skipped: no test data in '" << data.string() << "' (libonnx-testdata)\n";
      return 77;
    }
    folders += (folders.empty() ? "" : ", ") + data.string();
  }
  mlir::DialectRegistry registry;
  interpreter::registerInterpreterModels(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  std::set<std::string> missing;
  for (const std::string& name : options.expected)
    if (matchesGlob(options.filter, name))
      missing.insert(name);
  std::map<Outcome, int> counts;
  int failed = 0;
  for (const fs::path& folder : casesOf(options, missing)) {
    Case test;
    test.name = folder.filename().string();
    Outcome outcome = run(context, folder, test);
    bool isFailure = outcome == Outcome::Wrong ||
                     (outcome != Outcome::Pass && options.expected.contains(test.name));
    ++counts[outcome];
    failed += isFailure;
    if (isFailure || options.verbose)
      llvm::outs() << (isFailure ? "FAIL " : "") << nameOf(outcome) << " " << test.name
                   << (test.detail.empty() || outcome == Outcome::Pass ? "" : ": " + test.detail)
                   << "\n";
  }
  for (const std::string& name : missing)
    llvm::outs() << "FAIL " << name << ": expected to pass, not in " << folders << "\n";
  int seen = 0;
  for (auto [outcome, count] : counts)
    seen += count;
  if (seen == 0)
    llvm::outs() << "FAIL no case was run\n";
  llvm::outs() << counts[Outcome::Pass] << " passed, " << counts[Outcome::Unsupported]
               << " unsupported, " << counts[Outcome::Unreadable] << " unreadable, "
               << failed + missing.size() << " failed\n";
  return failed == 0 && missing.empty() && seen > 0 ? 0 : 1;
}
