// Turns the tensors of one function into buffers; the work of titan-plan-form-buffers.
#pragma once

#include "compiler/Memory/Destinations.h"
#include "dialects/Accum/Accum.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace titan::memory {

class BufferFormer {
public:
  explicit BufferFormer(mlir::func::FuncOp function)
      : function(function), builder(function.getContext()) {}

  mlir::LogicalResult run();

private:
  mlir::func::FuncOp function;
  mlir::OpBuilder builder;
  llvm::DenseMap<mlir::Value, mlir::Value>
      buffers; ///< of tensors already formed; new indices, tokens
  llvm::DenseMap<mlir::Value, mlir::Value> sharedCopies; ///< of buffers that are fixed
  llvm::DenseMap<mlir::Value, Slot> destinations;        ///< of tensors that may be written there

  llvm::FailureOr<llvm::SmallVector<Exit>> formSignature();
  mlir::LogicalResult formBlock(mlir::Block& block, llvm::ArrayRef<Exit> exits);
  void formExits(llvm::ArrayRef<Exit> exits, mlir::Location loc);

  mlir::LogicalResult formOp(mlir::Operation* op);
  void formCommand(kernel::CommandLikeOpInterface op);
  /// The command `like`, on the buffers and indices `operands`.
  void createCommand(kernel::CommandLikeOpInterface like, mlir::ValueRange operands);
  void formStart(dist::StartOp op);
  void formWait(dist::WaitOp op);
  /// `tensor` in a temporary, which can lie where other ranks read, at one place on all of them.
  mlir::Value sourceOf(mlir::Value tensor, ir::PhaseAttr phase);
  /// A copy of `buffer`, for sources of `phase`; of what is `fixed` in a run of the function one
  /// for all of its readers, made outside of the loops that it is not of.
  mlir::Value sharedCopyOf(mlir::Value buffer, bool isFixed, ir::PhaseAttr phase);
  mlir::LogicalResult formLoop(accum::LoopOp loop);
  /// The buffer that a loop accumulates its result in, holding `init`.
  mlir::Value formAccumulator(mlir::OpResult result, mlir::Value init);
  /// Where `result` belongs, as a buffer of its shape; null if it has no destination.
  mlir::Value wantedFor(mlir::OpResult result);
  /// The buffer for result `result` of a command that writes it to `out`.
  mlir::Value destinationOf(mlir::OpResult result, mlir::Value out);

  mlir::Value bufferOf(mlir::Value tensor);
  mlir::Value indexOf(mlir::Value scalar);
  mlir::Value newBuffer(mlir::Type tensor, mlir::Location loc);
  /// `buffer` in the shape of `tensor`.
  mlir::Value viewAs(mlir::Value buffer, mlir::Type tensor, mlir::Location loc);
  void copy(mlir::Value from, mlir::Value to, mlir::Location loc, ir::PhaseAttr phase = {});
};

} // namespace titan::memory
