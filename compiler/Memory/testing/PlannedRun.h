// Runs a planned function on a simulated arena: bytes, poisoned, with every command reading and
// writing at the offsets of the plan. What tests of the plan compare with the function on tensors.
#pragma once

#include "compiler/Interpreter/Interpreter.h"
#include "compiler/Memory/Plan.h"

namespace titan::memory::testing {

class PlannedRun {
public:
  /// `module` has been through the stage *plan*; every byte of the arena starts as 0xA5.
  explicit PlannedRun(mlir::ModuleOp module);

  void write(mlir::Value argument, const interpreter::Tensor& tensor);
  interpreter::Tensor read(mlir::Value argument) const;
  /// Runs the function's commands in order, in the declared types (the engine F32).
  llvm::LogicalResult run(const FunctionPlan& function);

  const ModulePlan& plan() const { return plan_; }

private:
  ModulePlan plan_;
  std::vector<unsigned char> arena_;
  llvm::DenseMap<mlir::Value, int64_t> counters_; ///< of the loops being run

  int64_t addressOf(mlir::Value buffer) const;
  interpreter::Tensor load(int64_t address, mlir::ShapedType type) const;
  void store(int64_t address, const interpreter::Tensor& tensor);
  llvm::LogicalResult runRange(llvm::ArrayRef<Command> commands);
  llvm::LogicalResult runCommand(mlir::Operation* op);
};

} // namespace titan::memory::testing
