// What kernel.call calls, on tensors.
#pragma once

#include "compiler/Interpreter/Frame.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/DialectInterface.h"

namespace titan::interpreter {

/// What the routines of a dialect other than `kernel` compute: registered as an interface of it.
class RoutineMeaning : public mlir::DialectInterface::Base<RoutineMeaning> {
public:
  explicit RoutineMeaning(mlir::Dialect* dialect) : Base(dialect) {}
  /// Sets the results of `op`, whose routine is of this dialect.
  virtual llvm::LogicalResult call(kernel::CallOp op, Frame& frame) const = 0;
};

/// Sets the results of `op`. Emits an error for a routine that has no meaning here.
llvm::LogicalResult callRoutine(kernel::CallOp op, Frame& frame);

} // namespace titan::interpreter
