// One compilation, from a model file or a printed stage to any later stage: what titan-compile and
// titan-eager share.
#pragma once

#include "compiler/Driver/CompilerContext.h"
#include "compiler/Driver/Options.h"
#include "compiler/Pipeline/CheckByExecution.h"
#include "compiler/Support/TargetInfo.h"
#include "frontend/nn/Model.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

#include <functional>

namespace titan {

class Compilation {
public:
  /// Reads `options.model`: imports an .onnx file or builds a model that Titan knows under the
  /// recipe, or parses a printed stage, which carries its own. `more` as in CompilerContext.
  static Result<std::unique_ptr<Compilation>>
  load(const CompileOptions& options, const mlir::DialectRegistry& more = mlir::DialectRegistry());

  /// The model that `build` makes under `recipe`; `options.model` is what it is called.
  static Result<std::unique_ptr<Compilation>>
  build(const CompileOptions& options, const nn::ModelFunction& build, const Recipe& recipe);

  /// Runs all stages after the module's own up to and including `stage` (at most plan).
  Status advance(Stage stage);

  /// How many targets the module is compiled for; their ways part behind *shard*.
  size_t targets() const { return std::max<size_t>(targets_.size(), 1); }
  /// Where there are several: goes on from what *shard* leaves, which the first call runs, for
  /// target number `number`.
  Status enterTarget(size_t number);

  /// Runs `work` under a name in the table of --timing.
  template <typename Work> auto timed(llvm::StringRef name, Work work) {
    mlir::TimingScope scope = timingRoot_.nest(name);
    return work();
  }

  mlir::ModuleOp module() { return *module_; }
  Stage stage() const { return stage_; }
  /// "mlp" for models/mlp.onnx
  const std::string& name() const { return name_; }
  /// What import wants the user to know (recovered names, ignored nodes).
  const std::vector<std::string>& notes() const { return notes_; }
  /// What --check-passes compared so far.
  const ExecutionReport& checked() const { return checked_; }
  /// The printed module, with a final newline.
  std::string print();

private:
  Compilation(const CompileOptions& options, const mlir::DialectRegistry& more);
  Status import();
  Status buildByName();
  Status buildModel(const nn::ModelFunction& build, const Recipe& recipe);
  Status parse();
  Status finishImport(const Recipe& recipe);
  std::function<void(mlir::PassManager&)> checksOfPasses();
  Status verifyBehind(Stage stage);
  Status chooseTargets();
  Status checkTarget();
  Status checkRecipeFor(llvm::StringRef kind);
  /// "mlp", or behind *shard* for one of several targets "mlp.cuda".
  std::string fileName(Stage stage) const;
  Status checkStage();
  bool verifiesEach() const;
  Status run(Stage stage);
  Status syncWithinLimit(Error refusal);
  Status checkMismatch();

  CompileOptions options_;
  CompilerContext compiler_;
  mlir::DefaultTimingManager timing_;
  mlir::TimingScope timingRoot_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  /// As it was before *shard*, where another mesh.sync may take less memory; null elsewhere.
  mlir::OwningOpRef<mlir::ModuleOp> unsharded_;
  std::vector<TargetInfo> targets_;                 ///< where there are several
  mlir::OwningOpRef<mlir::ModuleOp> shardedForAll_; ///< with several targets: what *shard* left
  size_t target_ = 0;                               ///< that was entered last
  Stage stage_ = Stage::Import;
  std::string name_;
  std::vector<std::string> notes_;
  ExecutionReport checked_;
};

} // namespace titan
