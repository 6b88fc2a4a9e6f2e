// The stage *schedule*.
#pragma once

#include "dialects/Accum/Accum.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace titan {

#define GEN_PASS_DECL
#include "compiler/Schedule/Passes.h.inc"

void addSchedulePasses(mlir::OpPassManager& passes);

#define GEN_PASS_REGISTRATION
#include "compiler/Schedule/Passes.h.inc"

} // namespace titan
