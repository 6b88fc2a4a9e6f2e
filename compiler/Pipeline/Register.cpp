#include "compiler/Pipeline/Register.h"

#include "compiler/Accumulate/Passes.h"
#include "compiler/Autodiff/Passes.h"
#include "compiler/Autodiff/Rules.h"
#include "compiler/Codegen/Targets.h"
#include "compiler/Codegen/kernel/Passes.h"
#include "compiler/Interpreter/Interpreter.h"
#include "compiler/Lower/Passes.h"
#include "compiler/Memory/Passes.h"
#include "compiler/Optimize/Passes.h"
#include "compiler/Pipeline/MarkStage.h"
#include "compiler/Pipeline/Pipeline.h"
#include "compiler/Schedule/Passes.h"
#include "compiler/Shard/Passes.h"
#include "dialects/Accum/Accum.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/Passes.h"

namespace titan {

void registerAllDialects(mlir::DialectRegistry& registry) {
  registry.insert<ir::TitanDialect, accum::AccumDialect, kernel::KernelDialect, dist::DistDialect,
                  mlir::func::FuncDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
  autodiff::registerDerivativeRules(registry);
  interpreter::registerInterpreterModels(registry);
  registerLowerInterfaces(registry);
  codegen::registerTargetInterfaces(registry);
}

void registerAllPasses() {
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  registerDifferentiatePasses();
  registerOptimizePasses();
  registerAccumulatePasses();
  registerShardPasses();
  registerSchedulePasses();
  registerLowerPasses();
  registerPlanPasses();
  codegen::registerTitanCodegenPasses();
  registerMarkStage();
  registerStagePipelines();
}

} // namespace titan
