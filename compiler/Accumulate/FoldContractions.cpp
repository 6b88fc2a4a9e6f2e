#include "compiler/Accumulate/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_FOLDCONTRACTIONS
#include "compiler/Accumulate/Passes.h.inc"

namespace {

struct FoldIntoAccumulator : OpRewritePattern<ir::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::AddOp add, PatternRewriter& rewriter) const override {
    auto loop = dyn_cast<accum::LoopOp>(add->getParentOp());
    if (!loop)
      return failure();
    for (auto [accumulator, product] :
         {std::pair{add.getLhs(), add.getRhs()}, std::pair{add.getRhs(), add.getLhs()}}) {
      auto contract = product.getDefiningOp<ir::ContractOp>();
      if (!contract || contract.getAcc() || !contract->hasOneUse() ||
          !llvm::is_contained(loop.getAccumulators(), accumulator))
        continue;
      rewriter.setInsertionPoint(add);
      rewriter.replaceOpWithNewOp<ir::ContractOp>(
          add, contract.getType(), contract.getLhs(), contract.getRhs(), accumulator,
          contract.getLhsBatch(), contract.getRhsBatch(), contract.getLhsContracting(),
          contract.getRhsContracting(), contract.getPathAttr(), contract.getPhaseAttr());
      rewriter.eraseOp(contract);
      return success();
    }
    return failure();
  }
};

struct FoldContractions : impl::FoldContractionsBase<FoldContractions> {
  LogicalResult initialize(MLIRContext* context) override {
    RewritePatternSet set(context);
    set.add<FoldIntoAccumulator>(context);
    patterns = std::move(set);
    return success();
  }
  void runOnOperation() override {
    if (failed(applyPatternsGreedily(getOperation(), patterns)))
      signalPassFailure();
  }
  FrozenRewritePatternSet patterns;
};

} // namespace

} // namespace titan
