// A module as *shard* leaves it, compiled for this machine and run in this process.
#pragma once

#include "compiler/Codegen/Codegen.h"
#include "compiler/Codegen/cpu/testing/LoadedCode.h"
#include "compiler/Interpreter/Ranks.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/device/testing/RunRanks.h"

#include <memory>
#include <vector>

namespace titan::testing {

/// Small whole numbers, so that every order of a sum gives the same bits.
interpreter::Tensor wholeNumbers(mlir::ShapedType type, uint64_t stream);

class CompiledStep {
public:
  /// Takes a copy of `module` through every stage behind *shard*. `step` is its function @step,
  /// which this does not own.
  static Result<CompiledStep> compile(mlir::ModuleOp module, const CodegenOptions& options = {});

  /// What @step gives on each rank, with `arguments` by rank, on CPU devices of `threads` threads
  /// each. What nobody has written is NaN.
  Result<std::vector<interpreter::Tensors>> run(llvm::ArrayRef<interpreter::Tensors> arguments,
                                                int threads);

  /// Gives every kernel to as many threads as it has units, however little they do.
  void spreadOverThreads();

  const Program& program() const { return compiled_.program; }
  /// Of the last run, by rank.
  const std::vector<RankRun>& runs() const { return runs_; }

private:
  CompiledStep(mlir::func::FuncOp step, CompiledModule compiled, codegen::testing::LoadedCode code)
      : step_(step), compiled_(std::move(compiled)),
        code_(std::make_unique<codegen::testing::LoadedCode>(std::move(code))) {}

  int64_t offsetOf(mlir::Attribute state, mlir::StringAttr binding) const;
  /// The arena before a run, with the job's constants.
  std::string arenaOf(const interpreter::Tensors& arguments) const;

  mlir::func::FuncOp step_;
  CompiledModule compiled_;
  std::unique_ptr<codegen::testing::LoadedCode> code_;
  std::vector<KernelFunction> kernels_;
  std::vector<RankRun> runs_;
};

} // namespace titan::testing
