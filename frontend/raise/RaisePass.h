// How a raise pass is declared: the ops it makes, its patterns, and one remark per op that it made.
#pragma once

#include "dialects/Titan/TensorBuilder.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"

namespace titan::frontend {

/// A pattern that ends in an op of type `Root` and becomes a value of one op.
template <typename Root> class RaisePattern : public mlir::OpRewritePattern<Root> {
public:
  using mlir::OpRewritePattern<Root>::OpRewritePattern;

  mlir::LogicalResult matchAndRewrite(Root root, mlir::PatternRewriter& rewriter) const final {
    ir::TensorBuilder b(rewriter, root);
    mlir::Value raised = raise(root, b);
    if (!raised)
      return mlir::failure();
    rewriter.replaceOp(root, raised);
    return mlir::success();
  }

protected:
  /// The value that replaces `root`, or null, without a trace in the IR. `b` has the path of
  /// `root`.
  virtual mlir::Value raise(Root root, ir::TensorBuilder& b) const = 0;
};

/// Applies `patterns` until none matches, and nothing else: an import shows the model as it was
/// written, unfolded. Each op that `isRaised` accepts and that the patterns made gets a remark
/// `raise` of category `import`.
mlir::LogicalResult applyRaisePatterns(mlir::func::FuncOp function,
                                       const mlir::FrozenRewritePatternSet& patterns,
                                       llvm::function_ref<bool(mlir::Operation*)> isRaised);

/// The module paths of both, for what replaces them; null where neither has one.
mlir::ArrayAttr joinedPath(mlir::Operation* a, mlir::Operation* b);

/// Says that `op` now stands for a pattern.
void remarkRaised(mlir::Operation* op);
/// Says that what ends in `op` looks like a titan op `what` but is not raised, and why.
void remarkNotRaised(mlir::Operation* op, llvm::StringRef what, const std::string& reason);

/// Erases the ops of `function`'s one block that nobody needs any more.
void eraseDeadOps(mlir::func::FuncOp function);

/// A pass over functions that raises to ops of the types `Raised`; `Base` is tablegen's. Defines
/// `addPatterns`.
template <typename Base, typename... Raised> class RaisePass : public Base {
public:
  using Base::Base;
  mlir::LogicalResult initialize(mlir::MLIRContext* context) override {
    mlir::RewritePatternSet set(context);
    addPatterns(set);
    patterns_ = std::move(set);
    return mlir::success();
  }
  void runOnOperation() override {
    if (failed(applyRaisePatterns(this->getOperation(), patterns_, llvm::IsaPred<Raised...>)))
      this->signalPassFailure();
  }

protected:
  virtual void addPatterns(mlir::RewritePatternSet& set) const = 0;

private:
  mlir::FrozenRewritePatternSet patterns_;
};

} // namespace titan::frontend
