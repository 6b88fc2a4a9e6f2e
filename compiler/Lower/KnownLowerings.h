// What came of the ops that a function has several of.
#pragma once

#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/StringMap.h"

namespace titan::lower {

/// Replaces ops by kernels. A rule knows nothing of other ops, so what came of one comes of all
/// that equal it but for their operands, paths and phase: in each layer of a model the same.
class KnownLowerings : public mlir::RewriterBase::Listener {
public:
  /// Replaces `op` by copies of what replaced one that equals it, if there was one: is it replaced?
  bool replaceAsBefore(mlir::RewriterBase& rewriter, mlir::Operation* op);

  /// Runs `rule`, which replaces `op` and puts what takes its place before it. What came of it is
  /// remembered if it `isDecidedByOp` afterwards, unless it reads other values than its operands.
  mlir::LogicalResult replaceBy(mlir::Operation* op, llvm::function_ref<mlir::LogicalResult()> rule,
                                const bool& isDecidedByOp);

private:
  struct Lowering {
    llvm::SmallVector<mlir::Value> operands; ///< of the op
    llvm::SmallVector<mlir::Operation*> ops; ///< that took its place, in their order
    llvm::SmallVector<mlir::Value> results;  ///< that took those of the op
  };

  llvm::StringMap<Lowering> known_;
  llvm::SmallVector<mlir::Value> results_; ///< of the replacement that happened last

  void notifyOperationReplaced(mlir::Operation*, mlir::ValueRange replacement) override {
    results_.assign(replacement.begin(), replacement.end());
  }
};

} // namespace titan::lower
