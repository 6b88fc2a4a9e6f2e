// titan-coverage CORPUS...: prints docs/coverage.md. The columns of the first table are asked of
// the registries; "import" is observed: every ONNX model below the CORPUS folders is imported, and
// the ops that appear are marked.
//
// A folder with test_data_set_0/ is a case of ONNX's backend suite: its inputs become constants,
// last one first, until the importer takes it.
#include "compiler/Support/Coverage.h"
#include "compiler/Pipeline/Register.h"
#include "frontend/onnx/Check.h"
#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/testing/ImportConstants.h"
#include "test/frontend/Recorded.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

namespace fs = std::filesystem;
using namespace titan;
using namespace titan::frontend;

namespace {

using Imported = std::set<std::string>;

void collect(mlir::ModuleOp module, Imported& ops) {
  module.walk([&](mlir::Operation* op) { ops.insert(op->getName().getStringRef().str()); });
}

/// The first inputs stay inputs, those from `firstConstant` on become constants.
bool importCase(mlir::MLIRContext& context, const fs::path& file,
                const ::onnx::ModelProto& original, int firstConstant, Imported& ops) {
  ::onnx::ModelProto model = original;
  model.mutable_graph()->clear_input();
  for (int i = 0; i < original.graph().input_size(); ++i) {
    const ::onnx::ValueInfoProto& info = original.graph().input(i);
    if (i < firstConstant) {
      *model.mutable_graph()->add_input() = info;
      continue;
    }
    auto tensor =
        readTensor(file.parent_path() / "test_data_set_0" / fmt::format("input_{}.pb", i));
    if (!tensor)
      return false;
    tensor->set_name(info.name());
    *model.mutable_graph()->add_initializer() = *tensor;
  }
  Result<Graph> graph = parseGraph(model.SerializeAsString(), file.string(), "");
  if (!graph.ok())
    return false;
  auto module = testing::importConstants(context, *graph);
  if (module.ok())
    collect(**module, ops);
  return module.ok();
}

void importFile(mlir::MLIRContext& context, const fs::path& file, Imported& ops) {
  if (!fs::is_directory(file.parent_path() / "test_data_set_0")) {
    ImportReport report;
    auto module = importOnnx(context, file.string(), Recipe(), {}, report);
    if (module.ok())
      collect(**module, ops);
    return;
  }
  std::ifstream stream(file, std::ios::binary);
  ::onnx::ModelProto model;
  if (!model.ParseFromIstream(&stream))
    return;
  for (int inputs = model.graph().input_size(); inputs >= 0; --inputs)
    if (importCase(context, file, model, inputs, ops))
      return;
}

} // namespace

int main(int argc, char** argv) {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  // Refusals are expected.
  context.getDiagEngine().registerHandler([](mlir::Diagnostic&) { return mlir::success(); });

  Imported imported;
  for (int i = 1; i < argc; ++i) {
    if (!fs::is_directory(argv[i])) {
      llvm::errs() << "skipped: no folder " << argv[i] << "\n";
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(argv[i]))
      if (entry.path().extension() == ".onnx")
        importFile(context, entry.path(), imported);
  }

  llvm::SmallVector<CoverageColumn> columns = interfaceColumns();
  columns.push_back({"import", [&](mlir::RegisteredOperationName op) {
                       return imported.contains(op.getStringRef().str());
                     }});
  llvm::outs() << R"(# Coverage

Printed by `titan-coverage` (test/documentation); a test compares this page with what it prints.

## Ops of the titan dialect

*interpreter*, *gradient*, *factor rule* and *lowering* (to kernels; f32 and every other type that the op takes) say whether the
op interface is registered for the op; *accumulating* (adds to an operand), *random* (draws), *narrow* (reads bf16 in mixed
precision) and *cost* are what the op says of itself to the passes. *import* says whether a model of the test suites, ours or ONNX's, becomes
that op. Comparisons, logic and integers pass no gradient; optimizers, `schedule` and `cross_entropy_grad` are made by later stages
and are neither differentiated nor imported; losses come from the recipe; `barrier` is removed rather than lowered.

)";
  printCoverage(context, columns, llvm::outs());
  llvm::outs() << R"(
## Ops of ONNX

What the importer converts. Ops that only compute shapes are folded at import and are not listed.

)" << coverageTable();
  return 0;
}
