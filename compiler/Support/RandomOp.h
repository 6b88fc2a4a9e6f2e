// The ops that draw random numbers: titan.dropout, and attention with dropout inside. What differs
// between them is which tensor's elements the decisions belong to.
#pragma once

#include "dialects/Titan/Titan.h"

namespace titan {

class RandomOp {
public:
  /// Does `op` draw? Attention without dropout does not.
  static bool classof(mlir::Operation* op);
  explicit RandomOp(mlir::Operation* op) : op_(op) {}

  mlir::Operation* operation() const { return op_; }
  uint64_t stream() const;
  /// The tensor whose element indices key the decisions: [B, H, T, S] for attention.
  llvm::SmallVector<int64_t> shape() const;
  /// For each dimension of `operation()`'s operand number `operand`, the dimension of that tensor
  /// that it is, or -1. Empty: an operand that says nothing of it.
  llvm::SmallVector<int64_t> dimsOf(unsigned operand) const;

  bool isSeeded() const;
  bool isPlaced() const; ///< has a window
  void seed(mlir::Value seed, mlir::Value step);
  /// `microbatch` may be null: every microbatch draws alike.
  void place(ir::WindowAttr window, mlir::Value microbatch);
  /// Draws as for the first microbatch: there is no other.
  void dropMicrobatch();
  /// Keeps every element: p = 0.
  void dropNothing();

private:
  mlir::Operation* op_;
};

/// Calls `function` on each random op under `root`, in program order.
void forEachRandomOp(mlir::Operation* root, llvm::function_ref<void(RandomOp)> function);

} // namespace titan
