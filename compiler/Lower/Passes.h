// The stage `lower`: titan -> kernel.
#pragma once

#include "dialects/PassFacts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace titan {

#define GEN_PASS_DECL
#include "compiler/Lower/Passes.h.inc"

void addLowerPasses(mlir::OpPassManager& passes);
void registerLowerPasses();
/// Attaches the lowering rules of all titan ops.
void registerLowerInterfaces(mlir::DialectRegistry& registry);

} // namespace titan
