#include "compiler/Autodiff/Passes.h"

#include "mlir/Transforms/Passes.h"

namespace titan {

/// Functions are single blocks here, in which the patterns leave nothing for a region to simplify.
static std::unique_ptr<mlir::Pass> createFolding() {
  mlir::GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(mlir::GreedySimplifyRegionLevel::Disabled);
  return mlir::createCanonicalizerPass(config);
}

void addDifferentiatePasses(mlir::OpPassManager& passes) {
  passes.addPass(createFreezeParameters());
  passes.addPass(createInsertLoss());
  passes.addPass(createBuildGradients());
  // Before anything shares the pads: a piece that is used twice stays one.
  passes.addPass(createCombinePieces());
  // Rules build constants, and forward values again where they need them: fold, then share.
  passes.addPass(createFolding());
  passes.addPass(createCombineDuplicates());
  passes.addPass(createDecidePrecision());
  passes.addPass(createVerifyDifferentiate());
}

} // namespace titan
