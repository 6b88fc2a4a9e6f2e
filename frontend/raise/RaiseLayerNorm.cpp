#include "dialects/Titan/TensorBuilder.h"
#include "frontend/raise/Matching.h"
#include "frontend/raise/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace titan::frontend {

#define GEN_PASS_DEF_RAISELAYERNORM
#include "frontend/raise/Passes.h.inc"

namespace {

/// The operand of a mean over the dimensions from `axis` on: sum / N.
struct Mean {
  Value operand;
  int64_t axis = -1;
};

std::optional<Mean> matchMean(Value value) {
  // Reshapes put back the reduced dimensions, before or after the scaling.
  Product product = productOf(throughBroadcast(value));
  if (product.factors.size() != 1)
    return std::nullopt;
  auto reduce = throughBroadcast(product.factors[0]).getDefiningOp<ir::ReduceOp>();
  if (!reduce || reduce.getKind() != ir::ReduceKind::Sum || reduce.getDims().empty())
    return std::nullopt;
  auto type = ir::tensorType(reduce.getOperand());
  int64_t rank = type.getRank(), axis = reduce.getDims().front(), count = 1;
  if (static_cast<int64_t>(reduce.getDims().size()) != rank - axis)
    return std::nullopt; // not the trailing dimensions
  for (int64_t d : reduce.getDims())
    count *= type.getDimSize(d);
  if (!isClose(product.constant, 1.0 / static_cast<double>(count)))
    return std::nullopt;
  return Mean{reduce.getOperand(), axis};
}

/// x - mean(x)
std::optional<Mean> matchDeviation(Value value) {
  auto sub = value.getDefiningOp<ir::SubOp>();
  if (!sub)
    return std::nullopt;
  std::optional<Mean> mean = matchMean(sub.getRhs());
  if (!mean || mean->operand != sub.getLhs())
    return std::nullopt;
  return mean;
}

/// Root(mean(d d) + epsilon) of the deviation d of `x`: epsilon.
template <typename Root> std::optional<double> matchRoot(Value value, const Mean& deviation) {
  auto root = throughBroadcast(value).getDefiningOp<Root>();
  auto sum =
      root ? throughBroadcast(root.getOperand()).template getDefiningOp<ir::AddOp>() : ir::AddOp();
  if (!sum)
    return std::nullopt;
  for (auto [variance, constant] :
       {std::pair(sum.getLhs(), sum.getRhs()), {sum.getRhs(), sum.getLhs()}}) {
    std::optional<double> epsilon = splatOf(constant);
    std::optional<Mean> mean = epsilon ? matchMean(variance) : std::nullopt;
    auto square = mean ? mean->operand.getDefiningOp<ir::MulOp>() : ir::MulOp();
    if (!square || square.getLhs() != square.getRhs() || mean->axis != deviation.axis)
      continue;
    std::optional<Mean> inner = matchDeviation(square.getLhs());
    if (inner && inner->operand == deviation.operand && inner->axis == deviation.axis)
      return epsilon;
  }
  return std::nullopt;
}

/// d / sqrt(v), d * (1 / sqrt(v)) or d * rsqrt(v).
template <typename Op> struct RaiseNormalization : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    for (auto [numerator, denominator] :
         {std::pair(op.getLhs(), op.getRhs()), {op.getRhs(), op.getLhs()}}) {
      std::optional<Mean> deviation = matchDeviation(numerator);
      if (deviation)
        if (std::optional<double> epsilon = matchScale(denominator, *deviation)) {
          ir::TensorBuilder b(rewriter, op);
          auto norm = b.create<ir::LayerNormOp>(deviation->operand, Value(), Value(),
                                                deviation->axis, *epsilon);
          rewriter.replaceOp(op, norm.getResult());
          return success();
        }
      if (std::is_same_v<Op, ir::DivOp>)
        break;
    }
    return failure();
  }

private:
  static std::optional<double> matchScale(Value value, const Mean& deviation) {
    if (std::is_same_v<Op, ir::DivOp>)
      return matchRoot<ir::SqrtOp>(value, deviation);
    auto reciprocal = throughBroadcast(value).getDefiningOp<ir::DivOp>();
    if (reciprocal && splatOf(reciprocal.getLhs()) == 1.0)
      return matchRoot<ir::SqrtOp>(reciprocal.getRhs(), deviation);
    return matchRoot<ir::RsqrtOp>(value, deviation);
  }
};

/// The tensor of the normalised dimensions that `value` repeats over the leading ones.
Value affineOperand(Value value, ir::LayerNormOp norm) {
  auto broadcast = value.getDefiningOp<ir::BroadcastOp>();
  if (!broadcast)
    return {};
  auto type = ir::tensorType(norm.getResult());
  auto axis = static_cast<int64_t>(norm.getAxis());
  auto expected = llvm::to_vector(llvm::seq<int64_t>(axis, type.getRank()));
  if (broadcast.getDims() != ArrayRef<int64_t>(expected))
    return {};
  return broadcast.getOperand();
}

/// norm(x) * scale, norm(x) + bias.
template <typename Op> struct FoldAffine : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    constexpr bool isScale = std::is_same_v<Op, ir::MulOp>;
    for (auto [left, right] : {std::pair(op.getLhs(), op.getRhs()), {op.getRhs(), op.getLhs()}}) {
      auto norm = left.template getDefiningOp<ir::LayerNormOp>();
      // A scale goes before a bias: after one, (n + b) * s is not n * s + b.
      if (!norm || left != norm.getResult() || !left.hasOneUse() || !norm.getMean().use_empty() ||
          !norm.getRstd().use_empty() || norm.getBias() || (isScale && norm.getScale()))
        continue;
      Value operand = affineOperand(right, norm);
      if (!operand)
        continue;
      ir::TensorBuilder b(rewriter, op);
      b.path = ir::joinPaths(ir::getPath(norm), ir::getPath(op));
      auto raised = b.create<ir::LayerNormOp>(
          norm.getOperand(), isScale ? operand : norm.getScale(), isScale ? Value() : operand,
          static_cast<int64_t>(norm.getAxis()), norm.getEpsilon().convertToDouble());
      rewriter.replaceOp(op, raised.getResult());
      return success();
    }
    return failure();
  }
};

struct RaiseLayerNorm : impl::RaiseLayerNormBase<RaiseLayerNorm> {
  LogicalResult initialize(MLIRContext* context) override {
    RewritePatternSet set(context);
    set.add<RaiseNormalization<ir::DivOp>, RaiseNormalization<ir::MulOp>, FoldAffine<ir::MulOp>,
            FoldAffine<ir::AddOp>>(context);
    patterns_ = std::move(set);
    return success();
  }
  void runOnOperation() override {
    GreedyRewriteConfig config;
    config.enableFolding(false).enableConstantCSE(false);
    if (failed(applyPatternsGreedily(getOperation(), patterns_, config)))
      signalPassFailure();
  }

private:
  FrozenRewritePatternSet patterns_;
};

} // namespace
} // namespace titan::frontend
