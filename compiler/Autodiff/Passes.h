// The stage *differentiate*: model -> @step, @eval and @predict over the same state.
#pragma once

#include "dialects/Accum/Accum.h"
#include "dialects/PassFacts.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace titan {

#define GEN_PASS_DECL
#include "compiler/Autodiff/Passes.h.inc"

/// The stage's passes in order, its Verify last.
void addDifferentiatePasses(mlir::OpPassManager& passes);

#define GEN_PASS_REGISTRATION
#include "compiler/Autodiff/Passes.h.inc"

} // namespace titan
