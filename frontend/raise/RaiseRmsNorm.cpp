#include "frontend/raise/NormMatching.h"
#include "frontend/raise/Passes.h"
#include "frontend/raise/RaisePass.h"

using namespace mlir;

namespace titan::frontend {

#define GEN_PASS_DEF_RAISERMSNORM
#include "frontend/raise/Passes.h.inc"

namespace {

/// x / sqrt(mean(x^2) + epsilon)
template <typename Op> struct RaiseNormalization : RaisePattern<Op> {
  using RaisePattern<Op>::RaisePattern;

  Value raise(Op op, ir::TensorBuilder& b) const override {
    for (auto [numerator, denominator] :
         {std::pair(op.getLhs(), op.getRhs()), {op.getRhs(), op.getLhs()}}) {
      std::optional<RootMeanSquare> root = matchDivisor<Op>(denominator);
      if (root && root->operand == numerator)
        return b.create<ir::RmsNormOp>(numerator, Value(), root->axis, root->epsilon).getResult();
      if (std::is_same_v<Op, ir::DivOp>)
        break;
    }
    return {};
  }
};

/// norm(x) * scale
struct FoldScale : RaisePattern<ir::MulOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::MulOp op, ir::TensorBuilder& b) const override {
    for (auto [left, right] : {std::pair(op.getLhs(), op.getRhs()), {op.getRhs(), op.getLhs()}}) {
      auto norm = left.getDefiningOp<ir::RmsNormOp>();
      if (!norm || left != norm.getResult() || !left.hasOneUse() || !norm.getRstd().use_empty() ||
          norm.getScale())
        continue;
      auto axis = static_cast<int64_t>(norm.getAxis());
      Value scale = trailingOperand(right, axis);
      if (!scale)
        continue;
      b.path = joinedPath(norm, op);
      return b
          .create<ir::RmsNormOp>(norm.getOperand(), scale, axis,
                                 norm.getEpsilon().convertToDouble())
          .getResult();
    }
    return {};
  }
};

struct RaiseRmsNorm : RaisePass<impl::RaiseRmsNormBase<RaiseRmsNorm>, ir::RmsNormOp> {
  void addPatterns(RewritePatternSet& set) const override {
    set.add<RaiseNormalization<ir::DivOp>, RaiseNormalization<ir::MulOp>, FoldScale>(
        set.getContext());
  }
};

} // namespace
} // namespace titan::frontend
