#include "frontend/raise/NormMatching.h"
#include "frontend/raise/Passes.h"
#include "frontend/raise/RaisePass.h"

using namespace mlir;

namespace titan::frontend {

#define GEN_PASS_DEF_RAISELAYERNORM
#include "frontend/raise/Passes.h.inc"

namespace {

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

/// The dimensions of `value` from `axis` on.
SmallVector<int64_t> rowDims(Value value, int64_t axis) {
  return llvm::to_vector(llvm::seq(axis, ir::tensorType(value).getRank()));
}

/// d / sqrt(mean(d^2) + epsilon) of the deviation d. (That alone would be RMSNorm of d.)
template <typename Op> struct RaiseNormalization : RaisePattern<Op> {
  using RaisePattern<Op>::RaisePattern;

  Value raise(Op op, ir::TensorBuilder& b) const override {
    for (auto [numerator, denominator] :
         {std::pair(op.getLhs(), op.getRhs()), {op.getRhs(), op.getLhs()}}) {
      std::optional<Mean> deviation = matchDeviation(numerator);
      std::optional<RootMeanSquare> root = deviation ? matchDivisor<Op>(denominator) : std::nullopt;
      std::optional<Mean> inner = root ? matchDeviation(root->operand) : std::nullopt;
      if (inner && inner->operand == deviation->operand && inner->axis == deviation->axis &&
          root->axis == deviation->axis)
        return b
            .create<ir::LayerNormOp>(deviation->operand, Value(), Value(),
                                     rowDims(deviation->operand, deviation->axis), root->epsilon)
            .getResult();
      if (std::is_same_v<Op, ir::DivOp>)
        break;
    }
    return {};
  }
};

/// norm(x) * scale, norm(x) + bias.
template <typename Op> struct FoldAffine : RaisePattern<Op> {
  using RaisePattern<Op>::RaisePattern;

  Value raise(Op op, ir::TensorBuilder& b) const override {
    constexpr bool isScale = std::is_same_v<Op, ir::MulOp>;
    for (auto [left, right] : {std::pair(op.getLhs(), op.getRhs()), {op.getRhs(), op.getLhs()}}) {
      auto norm = left.template getDefiningOp<ir::LayerNormOp>();
      // A scale goes before a bias: after one, (n + b) * s is not n * s + b.
      if (!norm || left != norm.getResult() || !left.hasOneUse() || !norm.getMean().use_empty() ||
          !norm.getRstd().use_empty() || norm.getBias() || (isScale && norm.getScale()))
        continue;
      const int64_t axis = norm.getDims().front();
      if (!norm.getDimsApart().empty())
        continue;
      Value operand = trailingOperand(right, axis);
      if (!operand)
        continue;
      b.path = joinedPath(norm, op);
      return b
          .create<ir::LayerNormOp>(norm.getOperand(), isScale ? operand : norm.getScale(),
                                   isScale ? Value() : operand, norm.getDims(),
                                   norm.getEpsilon().convertToDouble())
          .getResult();
    }
    return {};
  }
};

struct RaiseLayerNorm : RaisePass<impl::RaiseLayerNormBase<RaiseLayerNorm>, ir::LayerNormOp> {
  void addPatterns(RewritePatternSet& set) const override {
    set.add<RaiseNormalization<ir::DivOp>, RaiseNormalization<ir::MulOp>, FoldAffine<ir::MulOp>,
            FoldAffine<ir::AddOp>>(set.getContext());
  }
};

} // namespace
} // namespace titan::frontend
