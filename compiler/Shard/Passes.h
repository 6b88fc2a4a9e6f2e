// The stage *shard*.
#pragma once

#include "dialects/Accum/Accum.h"
#include "dialects/Dist/Dist.h"
#include "dialects/PassFacts.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace titan {

#define GEN_PASS_DECL
#include "compiler/Shard/Passes.h.inc"

void addShardPasses(mlir::OpPassManager& passes);

#define GEN_PASS_REGISTRATION
#include "compiler/Shard/Passes.h.inc"

} // namespace titan
