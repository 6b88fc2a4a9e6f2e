#include "compiler/Pipeline/Register.h"

#include "dialects/Accum/Accum.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/Passes.h"
#if __has_include("compiler/Autodiff/Passes.h")
#include "compiler/Autodiff/Passes.h"
#endif
#if __has_include("compiler/Lower/Passes.h")
#include "compiler/Lower/Passes.h"
#endif

namespace titan {

void registerAllDialects(mlir::DialectRegistry& registry) {
  registry.insert<ir::TitanDialect, accum::AccumDialect, kernel::KernelDialect,
                  mlir::func::FuncDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
}

void registerAllPasses() {
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
}

} // namespace titan
