// The pass that ends every stage: records it on the module.
#pragma once

#include "compiler/Pipeline/Stage.h"
#include "mlir/Pass/Pass.h"

namespace titan {

/// Sets `titan.stage`. A module that has not gone through the stage before, or has gone further, is
/// refused.
std::unique_ptr<mlir::Pass> createMarkStage(Stage stage);
void registerMarkStage();

} // namespace titan
