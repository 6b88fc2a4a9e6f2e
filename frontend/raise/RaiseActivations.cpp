#include "frontend/raise/Matching.h"
#include "frontend/raise/Passes.h"
#include "frontend/raise/RaisePass.h"

#include <cmath>

using namespace mlir;

namespace titan::frontend {

#define GEN_PASS_DEF_RAISEACTIVATIONS
#include "frontend/raise/Passes.h.inc"

namespace {

/// `1 + f`, with one use: f.
template <typename Op> Op onePlus(Value value) {
  auto add = value.getDefiningOp<ir::AddOp>();
  if (!add || !value.hasOneUse())
    return {};
  for (auto [term, one] : {std::pair(add.getLhs(), add.getRhs()), {add.getRhs(), add.getLhs()}})
    if (splatOf(one) == 1.0 && term.hasOneUse())
      if (auto op = term.getDefiningOp<Op>())
        return op;
  return {};
}

/// Is `value` x^power times `constant`?
bool isPower(Value value, Value x, int power, double constant) {
  if (value == x)
    return power == 1 && isClose(1, constant);
  if (auto pow = value.getDefiningOp<ir::PowOp>())
    return pow.getLhs() == x && splatOf(pow.getRhs()) == power && isClose(1, constant);
  Product product = productOf(value);
  int found = 0;
  for (Value factor : product.factors) {
    if (factor == x)
      ++found;
    else if (auto pow = factor.getDefiningOp<ir::PowOp>(); pow && pow.getLhs() == x)
      found += static_cast<int>(splatOf(pow.getRhs()).value_or(1e6));
    else if (auto square = factor.getDefiningOp<ir::MulOp>();
             square && square.getLhs() == x && square.getRhs() == x)
      found += 2;
    else
      return false;
  }
  return found == power && isClose(product.constant, constant);
}

/// sqrt(2/pi) (x + 0.044715 x^3), or x sqrt(2/pi) (1 + 0.044715 x^2)
bool isTanhArgument(Value value, Value x) {
  constexpr double kCubic = 0.044715;
  Product product = productOf(value);
  bool factored = product.factors.size() == 2;
  if (!isClose(product.constant, std::sqrt(2 / M_PI)) || product.factors.empty() ||
      product.factors.size() > 2)
    return false;
  if (factored && product.factors[1] == x)
    std::swap(product.factors[0], product.factors[1]);
  if (factored && product.factors[0] != x)
    return false;
  auto sum = product.factors.back().getDefiningOp<ir::AddOp>();
  if (!sum)
    return false;
  for (auto [a, b] : {std::pair(sum.getLhs(), sum.getRhs()), {sum.getRhs(), sum.getLhs()}}) {
    bool first = factored ? splatOf(a) == 1.0 : a == x;
    if (first && isPower(b, x, factored ? 2 : 3, kCubic))
      return true;
  }
  return false;
}

struct RaiseProduct : RaisePattern<ir::MulOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::MulOp op, ir::TensorBuilder& b) const override {
    if (!isa<FloatType>(op.getType().getElementType()))
      return {};
    Product product = productOf(op.getResult());
    if (product.factors.size() != 2)
      return {};
    for (auto [x, gate] : {std::pair(product.factors[0], product.factors[1]),
                           {product.factors[1], product.factors[0]}}) {
      if (x.getType() != op.getType())
        continue;
      if (auto sigmoid = gate.getDefiningOp<ir::SigmoidOp>();
          sigmoid && gate.hasOneUse() && sigmoid.getOperand() == x && product.constant == 1)
        return b.create<ir::SiluOp>(x);
      if (!isClose(product.constant, 0.5))
        continue;
      if (auto erf = onePlus<ir::ErfOp>(gate);
          erf && isPower(erf.getOperand(), x, 1, std::sqrt(0.5)))
        return gelu(x, ir::GeluForm::Erf, b);
      if (auto tanh = onePlus<ir::TanhOp>(gate); tanh && isTanhArgument(tanh.getOperand(), x))
        return gelu(x, ir::GeluForm::Tanh, b);
    }
    return {};
  }

private:
  static Value gelu(Value x, ir::GeluForm form, ir::TensorBuilder& b) {
    return b.create<ir::GeluOp>(x, ir::GeluFormAttr::get(x.getContext(), form));
  }
};

/// log(sigmoid(x)), which exporters write for the logarithm itself: in f32 the sigmoid is 0 below
/// -88, and 1 above 17.
struct RaiseLogSigmoid : RaisePattern<ir::LogOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::LogOp op, ir::TensorBuilder& b) const override {
    auto sigmoid = op.getOperand().getDefiningOp<ir::SigmoidOp>();
    return sigmoid ? b.neg(b.create<ir::SoftplusOp>(b.neg(sigmoid.getOperand()))) : Value();
  }
};

struct RaiseActivations : RaisePass<impl::RaiseActivationsBase<RaiseActivations>, ir::GeluOp,
                                    ir::SiluOp, ir::SoftplusOp> {
  void addPatterns(RewritePatternSet& set) const override {
    set.add<RaiseProduct, RaiseLogSigmoid>(set.getContext());
  }
};

} // namespace
} // namespace titan::frontend
