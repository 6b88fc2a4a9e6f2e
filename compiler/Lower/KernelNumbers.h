// Kernels of one number are equal.
#pragma once

#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/StringMap.h"

namespace titan::lower {

/// Numbers kernels by what they compute (`KeyBuilder::addKernel`). It listens to the rewriter that
/// makes and erases them, in front of `next`; a kernel that has a number keeps its body and the
/// types of its operands.
class KernelNumbers : public mlir::RewriterBase::ForwardingListener {
public:
  explicit KernelNumbers(mlir::OpBuilder::Listener* next) : ForwardingListener(next) {}

  unsigned of(kernel::FusedOp op);
  /// A number of its own, without a look at its body.
  unsigned setNew(kernel::FusedOp op) { return numbers_[op] = next_++; }
  /// Of a kernel that is known to equal another.
  void set(kernel::FusedOp op, unsigned number) { numbers_[op] = number; }

  void notifyOperationErased(mlir::Operation* op) override {
    numbers_.erase(op);
    ForwardingListener::notifyOperationErased(op);
  }

private:
  llvm::DenseMap<mlir::Operation*, unsigned> numbers_;
  llvm::StringMap<unsigned> known_; ///< by key
  unsigned next_ = 0;
};

} // namespace titan::lower
