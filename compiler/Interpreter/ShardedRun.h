// Runs the program of one rank on all ranks of its mesh, with the arguments and results of the
// whole job.
#pragma once

#include "compiler/Interpreter/Division.h"
#include "compiler/Interpreter/Interpreter.h"
#include "compiler/Interpreter/Ranks.h"

namespace titan::interpreter {

/// A function of the whole job runs on one rank.
class ShardedRun {
public:
  /// Emits an error where an argument or result is not what a rank has.
  static mlir::FailureOr<ShardedRun> create(mlir::func::FuncOp function);

  mlir::func::FuncOp function() const { return function_; }
  int64_t ranks() const;
  llvm::ArrayRef<Division> arguments() const { return arguments_; }
  llvm::ArrayRef<Division> results() const { return results_; }
  /// The arguments' types in the whole job.
  llvm::SmallVector<mlir::RankedTensorType> argumentTypes() const;
  /// Do ranks hold padding? Runs with another content of it are then worth comparing.
  bool hasPadding() const;
  /// What the padding of arguments holds in the runs from now on; NaN if this is not called.
  void setPadding(Padding padding) { padding_ = padding; }

  /// Runs the function on each rank with its part of `arguments`, joins what they return. Emits an
  /// error where ranks do not meet, or return different values for what they all have.
  mlir::FailureOr<Tensors> run(llvm::ArrayRef<Tensor> arguments, Engine engine) const;
  /// The same where rank r runs programs[r], a function of the same type.
  mlir::FailureOr<Tensors> run(llvm::ArrayRef<mlir::func::FuncOp> programs,
                               llvm::ArrayRef<Tensor> arguments, Engine engine) const;

  /// Runs `program` once for each rank with its part of `arguments`, and joins what it returns: for
  /// those who run the function by other means.
  mlir::FailureOr<Tensors>
  runEach(llvm::ArrayRef<Tensor> arguments,
          llvm::function_ref<mlir::FailureOr<Tensors>(Rank* rank, llvm::ArrayRef<Tensor>)> program)
      const;

private:
  explicit ShardedRun(mlir::func::FuncOp function) : function_(function) {}
  Tensors cutFor(llvm::ArrayRef<int64_t> coordinates, llvm::ArrayRef<Tensor> arguments) const;
  mlir::FailureOr<Tensors> joinAll(llvm::ArrayRef<Tensors> ofRanks) const;

  mlir::func::FuncOp function_;
  Recipe recipe_;              ///< whose mesh is that of the module
  std::vector<MeshAxis> mesh_; ///< empty for a function of the whole job
  std::vector<Division> arguments_, results_;
  Padding padding_ = Padding::NaN;
};

} // namespace titan::interpreter
