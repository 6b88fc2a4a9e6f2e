// Imports a model and prints the module: what the FileCheck tests of the importer run.
//   import-print MODEL [--set key=value]... [--names F] [--weights-dir D]
#include "frontend/onnx/Check.h"
#include "frontend/onnx/Import.h"

#include "llvm/Support/raw_ostream.h"

#include <cstring>

int main(int argc, char** argv) {
  titan::Recipe recipe;
  titan::frontend::ImportOptions options;
  std::string model;
  bool check = false;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--check") {
      check = true;
    } else if (argument.starts_with("--") && i + 1 < argc) {
      std::string value = argv[++i];
      if (argument == "--set") {
        if (titan::Status status = titan::setKey(recipe, value); !status.ok()) {
          llvm::errs() << "error: " << status.error().message() << "\n";
          return status.error().exitCode();
        }
      } else if (argument == "--names") {
        options.namesFile = value;
      } else if (argument == "--weights-dir") {
        options.weightsDirectory = value;
      }
    } else {
      model = argument;
    }
  }
  mlir::MLIRContext context;
  if (check) {
    titan::Result<titan::frontend::CheckReport> report =
        titan::frontend::checkModel(context, model, recipe, options);
    if (!report.ok()) {
      llvm::errs() << "error: " << report.error().message() << "\n";
      return report.error().exitCode();
    }
    llvm::outs() << report->text;
    return report->importable ? 0 : 1;
  }
  titan::frontend::ImportReport report;
  auto module = titan::frontend::importOnnx(context, model, recipe, options, report);
  for (const std::string& note : report.notes)
    llvm::errs() << "note: " << note << "\n";
  if (!module.ok()) {
    llvm::errs() << "error: " << module.error().message() << "\n";
    return module.error().exitCode();
  }
  (*module)->print(llvm::outs());
  return 0;
}
