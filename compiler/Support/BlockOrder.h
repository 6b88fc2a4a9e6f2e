// The order of ops in a block that changes all the time.
#pragma once

#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/DenseMap.h"

namespace titan {

/// Which of two ops of a block comes first. Operation::isBeforeInBlock says so too, but numbers the
/// whole block anew behind most changes of it; here a new op gets a number between those of its
/// neighbours, and all others keep theirs. It listens to the rewriter that makes the changes.
class BlockOrder : public mlir::RewriterBase::Listener {
public:
  bool isBefore(mlir::Operation* first, mlir::Operation* second);

  void notifyOperationInserted(mlir::Operation* op, mlir::OpBuilder::InsertPoint) override {
    numbers_.erase(op); // moved, or new where an erased one was
  }
  void notifyOperationErased(mlir::Operation* op) override { numbers_.erase(op); }

private:
  void number(mlir::Operation* op);
  void numberAll(mlir::Block& block);

  llvm::DenseMap<mlir::Operation*, uint64_t> numbers_; ///< they grow along each block
};

} // namespace titan
