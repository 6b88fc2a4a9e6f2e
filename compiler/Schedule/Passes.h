// The stage *schedule*.
#pragma once

#include "compiler/Schedule/FitMemory.h"
#include "dialects/Accum/Accum.h"
#include "dialects/Dist/Dist.h"
#include "dialects/PassFacts.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace titan {

#define GEN_PASS_DECL
#include "compiler/Schedule/Passes.h.inc"

/// With `measure`, decisions for memory.limit are checked against the plan; without, the memory
/// model's estimate counts.
/// `disabled` are the names of passes that will be skipped.
void addSchedulePasses(mlir::OpPassManager& passes, MeasurePlan measure = {},
                       llvm::ArrayRef<std::string> disabled = {});
std::unique_ptr<mlir::Pass> createFitMemory(MeasurePlan measure,
                                            llvm::ArrayRef<std::string> disabled);

#define GEN_PASS_REGISTRATION
#include "compiler/Schedule/Passes.h.inc"

} // namespace titan
