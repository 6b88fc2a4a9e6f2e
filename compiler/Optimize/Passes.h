// The stage *optimize*: normalise, clip, schedule, update and counters, as titan ops after the
// loop.
#pragma once

#include "dialects/Titan/Titan.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace titan {

#define GEN_PASS_DECL
#include "compiler/Optimize/Passes.h.inc"

void addOptimizePasses(mlir::OpPassManager& passes);

#define GEN_PASS_REGISTRATION
#include "compiler/Optimize/Passes.h.inc"

} // namespace titan
