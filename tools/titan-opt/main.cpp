// titan-opt: runs passes and stage pipelines on printed modules.
#include "compiler/Pipeline/Register.h"
#include "frontend/raise/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "runtime/program/Process.h"

int main(int argc, char** argv) {
  titan::prepareProcess();
  titan::registerAllPasses();
  titan::frontend::registerImportPasses();
  mlir::DialectRegistry registry;
  titan::registerAllDialects(registry);
  registry.insert<mlir::vector::VectorDialect>(); // of generated kernels
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Titan's pass driver: passes and stage pipelines by name\n", registry));
}
