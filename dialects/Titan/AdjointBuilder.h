// What a derivative rule reads and writes (DifferentiableOpInterface).
#pragma once

#include "dialects/Titan/TensorBuilder.h"

namespace titan::ir {

class AdjointBuilder : public TensorBuilder {
public:
  /// Ops that a rule builds carry `op`'s module paths and phase backward.
  AdjointBuilder(mlir::OpBuilder& builder, mlir::Operation* op,
                 llvm::ArrayRef<mlir::Value> resultAdjoints, llvm::ArrayRef<bool> needed)
      : TensorBuilder(builder, op, Phase::Backward), resultAdjoints(resultAdjoints), needed(needed),
        operandAdjoints(op->getNumOperands()) {}

  /// Null when no use of the result reaches the loss.
  mlir::Value result(unsigned index = 0) const { return resultAdjoints[index]; }
  bool needs(unsigned operand) const { return needed[operand]; }
  void set(unsigned operand, mlir::Value adjoint) { operandAdjoints[operand] = adjoint; }
  /// One per operand; null where the adjoint is zero.
  llvm::ArrayRef<mlir::Value> operands() const { return operandAdjoints; }

private:
  llvm::ArrayRef<mlir::Value> resultAdjoints;
  llvm::ArrayRef<bool> needed;
  llvm::SmallVector<mlir::Value> operandAdjoints;
};

} // namespace titan::ir
