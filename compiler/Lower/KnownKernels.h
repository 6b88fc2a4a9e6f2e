// What is known of the kernels of a function. Equal ones share it.
#pragma once

#include "compiler/Lower/FusionCost.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/StringMap.h"

#include <deque>

namespace titan::lower {

/// Numbers kernels by what they compute (`KeyBuilder::addKernel`). It listens to the rewriter that
/// makes and erases them, in front of `next`; a kernel that has a number keeps its body and the
/// types of its operands.
///
/// A kernel that equals one whose body is kept needs none until `fill`: most are merged into
/// another one before.
class KnownKernels : public mlir::RewriterBase::ForwardingListener {
public:
  explicit KnownKernels(mlir::OpBuilder::Listener* next) : ForwardingListener(next) {}

  unsigned numberOf(kernel::FusedOp op);
  mlir::Block& bodyOf(kernel::FusedOp op);
  const KernelFacts& factsOf(kernel::FusedOp op);

  /// Gives `op`, which equals none before it, a number, and keeps its body for those that will.
  unsigned addNew(kernel::FusedOp op);
  /// `op` has no body, and computes what `number` does, which `addNew` returned.
  void addEqual(kernel::FusedOp op, unsigned number) { numbers_[op] = number; }
  /// Gives `op` a body where it has none.
  void fill(kernel::FusedOp op);

  void notifyOperationErased(mlir::Operation* op) override {
    numbers_.erase(op);
    ForwardingListener::notifyOperationErased(op);
  }

private:
  struct Known {
    mlir::Region body;
    std::optional<KernelFacts> facts;
  };
  llvm::DenseMap<mlir::Operation*, unsigned> numbers_;
  llvm::StringMap<unsigned> keys_; ///< of numbers that were found by looking
  std::deque<Known> known_;        ///< by number
};

} // namespace titan::lower
