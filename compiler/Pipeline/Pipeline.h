// The way of a module through the compiler, stage by stage.
#pragma once

#include "compiler/Pipeline/Stage.h"
#include "mlir/Pass/PassManager.h"

namespace titan {

/// Appends the passes of the stages after `from` up to and including `to`. Import and codegen are
/// not passes: the first is the frontend, the last leaves MLIR (compiler/Codegen). `disabled` are
/// the passes that the context skips (skipPasses), so that what *schedule* measures skips them,
/// too.
void addStages(mlir::OpPassManager& passes, Stage from, Stage to,
               llvm::ArrayRef<std::string> disabled = {});

/// Appends the checks of what holds in a module that says it is at `stage`: a printed stage may
/// have been edited. What the frontend promises of *import* is the frontend's to check.
void addStageChecks(mlir::OpPassManager& passes, Stage stage);

/// Passes that only make the program better, as they say themselves (PassFacts.h): those that
/// `--disable-pass` may name. A pass of no such name is none.
bool isOptionalPass(llvm::StringRef name);
/// Those of the pipeline, in its order, each once.
std::vector<std::string> optionalPasses();

/// Makes every pass manager of `context` skip the passes with these names.
void skipPasses(mlir::MLIRContext& context, llvm::ArrayRef<std::string> names);

/// Registers each stage as a pipeline of titan-opt: `--titan-stage-lower` and so on.
void registerStagePipelines();

} // namespace titan
