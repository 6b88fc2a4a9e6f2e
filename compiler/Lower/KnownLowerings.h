// What came of the ops that a function has several of.
#pragma once

#include "compiler/Lower/LoweringBuilder.h"

namespace titan::lower {

/// Replaces ops by kernels. A rule knows nothing of other ops, so what came of one comes of all
/// that equal it but for their operands, paths and phase: in each layer of a model the same.
class KnownLowerings : private mlir::RewriterBase::Listener {
public:
  /// `machine` outlives the object.
  KnownLowerings(mlir::MLIRContext* context, const MachineModel& machine)
      : rewriter_(context, this), machine_(machine) {}

  /// For kernels that take the place of `op`.
  LoweringBuilder builderFor(mlir::Operation* op) { return {rewriter_, op, machine_, shared_}; }

  /// Replaces the last of `ops`, that of `lowering`, which alone needs the others, by copies of
  /// what replaced one of ops that equal them. Else by `lower`, which puts what takes its place
  /// before it; that is remembered if it `isDecidedByOp`.
  mlir::LogicalResult replace(llvm::ArrayRef<mlir::Operation*> ops, LoweringBuilder& lowering,
                              llvm::function_ref<mlir::LogicalResult()> lower);

private:
  /// What ops and the values that they share decided.
  struct Lowering {
    llvm::SmallVector<mlir::Value> operands; ///< of the ops, but for results of them
    llvm::SmallVector<mlir::Operation*> ops; ///< that took its place, in their order
    llvm::SmallVector<mlir::Value> results;  ///< that took those of the op
    llvm::SmallVector<unsigned> fixed;       ///< operands that decide what is shared
    mlir::Block* block;                      ///< of what is shared
    ir::PhaseAttr phase;                     ///< the same

    bool fits(mlir::ValueRange others, const LoweringBuilder& lowering) const;
    void copyTo(mlir::ValueRange others, LoweringBuilder& lowering) const;
  };

  mlir::IRRewriter rewriter_;
  const MachineModel& machine_;
  SharedKernels shared_;
  llvm::StringMap<llvm::SmallVector<Lowering, 1>> known_;
  llvm::SmallVector<mlir::Value> results_; ///< of the replacement that happened last

  void notifyOperationReplaced(mlir::Operation*, mlir::ValueRange replacement) override {
    results_.assign(replacement.begin(), replacement.end());
  }
};

} // namespace titan::lower
