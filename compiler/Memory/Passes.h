// The stage `plan`: kernels on tensors -> kernels on buffers of one arena.
#pragma once

#include "dialects/PassFacts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace titan {

#define GEN_PASS_DECL
#include "compiler/Memory/Passes.h.inc"

void addPlanPasses(mlir::OpPassManager& passes);
void registerPlanPasses();

} // namespace titan
