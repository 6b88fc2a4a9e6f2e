// Each raise pass keeps what the model computes: runs every function of the files before and after
// each pass in the reference interpreter, on random arguments. Files are hand-written modules
// (.mlir), of which some pass functions alone, and exports (.onnx).
//
//   raising-keeps-meaning FILE...
#include "compiler/Pipeline/CheckByExecution.h"
#include "dialects/Titan/Titan.h"
#include "frontend/onnx/Import.h"
#include "frontend/onnx/ReadGraph.h"
#include "frontend/raise/Passes.h"

#include "compiler/Interpreter/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

using namespace titan;
using namespace titan::frontend;

namespace {

/// What is wrong, or nothing.
std::string checkModule(mlir::MLIRContext& context, const std::string& file) {
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(file, &context);
  if (!module)
    return "cannot be parsed";
  mlir::PassManager passes(&context);
  ExecutionReport report;
  addExecutionCheck(passes, report);
  addRaisePasses(passes.nest<mlir::func::FuncOp>());
  if (mlir::failed(passes.run(*module)))
    return "the passes failed";
  return report.mismatch.empty() ? "" : report.mismatch + ": " + report.difference;
}

Result<std::string> checkModel(mlir::MLIRContext& context, const std::string& file) {
  Graph graph = TITAN_TRY(readGraph(file, {}));
  NameTable names = TITAN_TRY(nameTensors(graph, {}));
  Recipe recipe;
  recipe.model.init = "fresh";
  recipe.batch.micro = recipe.batch.global = 2;
  for (const Port& input : graph.inputs)
    if (input.dims)
      for (size_t d = 1; d < input.dims->size(); ++d)
        if (const Dim& dim = (*input.dims)[d]; !dim.extent)
          recipe.model.dims[dim.symbol] = 12;
  ExecutionReport report;
  TITAN_TRY(importGraph(context, graph, names, recipe,
                        [&](mlir::PassManager& passes) { addExecutionCheck(passes, report); }));
  return report.mismatch.empty() ? "" : report.mismatch + ": " + report.difference;
}

} // namespace

int main(int argc, char** argv) {
  mlir::DialectRegistry registry;
  registry.insert<ir::TitanDialect, mlir::func::FuncDialect>();
  interpreter::registerInterpreterModels(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  context.disableMultithreading();
  int failures = 0;
  for (int i = 1; i < argc; ++i) {
    std::string file = argv[i], problem;
    if (file.ends_with(".mlir")) {
      problem = checkModule(context, file);
    } else {
      Result<std::string> checked = checkModel(context, file);
      problem = checked.ok() ? *checked : checked.error().message();
    }
    if (problem.empty())
      continue;
    ++failures;
    llvm::errs() << file << ": " << problem << "\n";
  }
  llvm::outs() << argc - 1 << " files, " << failures << " differ\n";
  return failures == 0 && argc > 1 ? 0 : 1;
}
