// Turns the tensors of one function into buffers; the work of titan-plan-form-buffers.
#pragma once

#include "dialects/Accum/Accum.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace titan::memory {

class BufferFormer {
public:
  explicit BufferFormer(mlir::func::FuncOp function)
      : function(function), builder(function.getContext()) {}

  mlir::LogicalResult run();

private:
  /// Where a value belongs at the end of its block: the buffer of a state, of an accumulator, of a
  /// metric or an output.
  struct Slot {
    mlir::Value buffer;
    mlir::Value
        old; ///< the tensor whose value the buffer holds before; null for metrics and outputs
    bool isState = false;
  };
  struct Exit {
    mlir::Value value;
    Slot slot;
  };

  mlir::func::FuncOp function;
  mlir::OpBuilder builder;
  llvm::DenseMap<mlir::Value, mlir::Value> buffers; ///< of tensors already formed
  llvm::DenseMap<mlir::Value, Slot>
      destinations; ///< of tensors that may be written where they belong

  llvm::FailureOr<llvm::SmallVector<Exit>> formSignature();
  mlir::LogicalResult formBlock(mlir::Block& block, llvm::ArrayRef<Exit> exits);
  void chooseDestinations(mlir::Block& block, llvm::ArrayRef<Exit> exits);
  bool mayWriteEarly(mlir::OpResult value, const Slot& slot);
  void formExits(llvm::ArrayRef<Exit> exits, mlir::Location loc);

  mlir::LogicalResult formOp(mlir::Operation* op);
  void formFused(kernel::FusedOp op);
  void formCall(kernel::CallOp op);
  mlir::LogicalResult formLoop(accum::LoopOp loop);
  /// The buffer for result `result` of a kernel whose outs operand is `out`.
  mlir::Value destinationOf(mlir::OpResult result, mlir::Value out);

  mlir::Value bufferOf(mlir::Value tensor);
  mlir::Value newBuffer(mlir::Type tensor, mlir::Location loc);
  /// `buffer` in the shape of `tensor`.
  mlir::Value viewAs(mlir::Value buffer, mlir::Type tensor, mlir::Location loc);
  void copy(mlir::Value from, mlir::Value to, mlir::Location loc, bool isState = false);
};

} // namespace titan::memory
