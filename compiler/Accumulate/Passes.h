// The stage *accumulate*: the order of accumulation, and each microbatch's place in the global
// batch.
#pragma once

#include "dialects/Accum/Accum.h"
#include "dialects/PassFacts.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace titan {

#define GEN_PASS_DECL
#include "compiler/Accumulate/Passes.h.inc"

void addAccumulatePasses(mlir::OpPassManager& passes);

#define GEN_PASS_REGISTRATION
#include "compiler/Accumulate/Passes.h.inc"

} // namespace titan
