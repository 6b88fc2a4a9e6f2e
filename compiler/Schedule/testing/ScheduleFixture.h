// Decoders taken through the stages, for tests that run them.
#pragma once

#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "compiler/Pipeline/Pipeline.h"
#include "compiler/Pipeline/Register.h"
#include "compiler/Schedule/testing/GptModel.h"
#include "mlir/Pass/PassManager.h"

namespace titan::schedule::testing {

class ScheduleFixture : public interpreter::testing::ModuleFixture {
protected:
  ScheduleFixture() : ModuleFixture(registerAllDialects) { context.disableMultithreading(); }

  /// A model taken to `stage`.
  mlir::OwningOpRef<mlir::ModuleOp> make(const GptShape& shape, Stage stage) {
    mlir::OwningOpRef<mlir::ModuleOp> module = parse(gptModel(shape));
    advance(*module, Stage::Import, stage);
    return module;
  }
  void advance(mlir::ModuleOp module, Stage from, Stage to) {
    mlir::PassManager passes(&context);
    addStages(passes, from, to);
    EXPECT_TRUE(mlir::succeeded(passes.run(module)));
  }
};

} // namespace titan::schedule::testing
