// The passes of the stage *import*. importOnnx runs them; titan-opt runs them by name.
#pragma once

#include "dialects/PassFacts.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace titan::frontend {

#define GEN_PASS_DECL
#include "frontend/raise/Passes.h.inc"

/// On functions: one spelling, then raises decomposed patterns. Each pass keeps what the function
/// computes.
void addRaisePasses(mlir::OpPassManager& functions);
/// Raises decomposed patterns, then verifies; on a module that holds `@model`.
void addImportPasses(mlir::OpPassManager& passes);

#define GEN_PASS_REGISTRATION
#include "frontend/raise/Passes.h.inc"

} // namespace titan::frontend
