#include "frontend/raise/NormMatching.h"
#include "frontend/raise/Passes.h"
#include "frontend/raise/RaisePass.h"

#include <cmath>

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

/// x / max(length of x, floor) is the norm over sqrt(N). Where the length is not of the order of
/// the floor, which stands against a division by zero, floor^2 below the root is nothing either.
struct RaiseLength : RaisePattern<ir::DivOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::DivOp op, ir::TensorBuilder& b) const override {
    constexpr double kLargestFloor = 1e-8;
    std::optional<Length> length = matchLength(op.getRhs());
    if (!length || length->operand != op.getLhs() || length->floor < 0 ||
        length->floor > kLargestFloor)
      return {};
    auto count = static_cast<double>(length->count);
    Value norm = b.create<ir::RmsNormOp>(length->operand, Value(), length->axis,
                                         length->floor * length->floor / count)
                     .getResult();
    return b.scale(norm, 1 / std::sqrt(count));
  }
};

/// norm(x) * scale, where constants beside them cancel
struct FoldScale : RaisePattern<ir::MulOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::MulOp op, ir::TensorBuilder& b) const override {
    Product product = productOf(op.getResult());
    if (product.factors.size() != 2 || !isClose(product.constant, 1))
      return {};
    for (auto [left, right] : {std::pair(product.factors[0], product.factors[1]),
                               {product.factors[1], product.factors[0]}}) {
      auto norm = left.getDefiningOp<ir::RmsNormOp>();
      if (!norm || left != norm.getResult() || !left.hasOneUse() || !norm.getRstd().use_empty() ||
          norm.getScale() || left.getType() != op.getType())
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
    set.add<RaiseNormalization<ir::DivOp>, RaiseNormalization<ir::MulOp>, RaiseLength, FoldScale>(

        set.getContext());
  }
};

} // namespace
} // namespace titan::frontend
