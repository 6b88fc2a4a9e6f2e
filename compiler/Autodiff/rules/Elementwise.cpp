// Derivatives of the elementwise ops. Rules prefer the result to the operand where both would do:
// the result is usually kept anyway.
#include "compiler/Autodiff/Rules.h"

#include <numbers>

using namespace mlir;
using namespace titan::ir;

namespace titan::autodiff {

namespace {

using Builder = AdjointBuilder;

Value zeroLike(Builder& b, Value x) { return b.splatLike(x, 0); }
Value isPositive(Builder& b, Value x) { return b.compare(ComparePredicate::GT, x, zeroLike(b, x)); }
Value square(Builder& b, Value x) { return b.mul(x, x); }

Value gelu(Builder& b, GeluOp op, Value dy) {
  Value x = op.getOperand();
  if (op.getForm() == GeluForm::Erf) {
    // Phi(x) + x phi(x), with the normal distribution's cdf and density.
    Value cdf = b.scale(b.shift(b.create<ErfOp>(b.scale(x, 1 / std::numbers::sqrt2)), 1), 0.5);
    Value density =
        b.scale(b.exp(b.scale(square(b, x), -0.5)), std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    return b.mul(dy, b.add(cdf, b.mul(x, density)));
  }
  // t = tanh(u), u = r (x + c x^3): (1 + t) / 2 + x / 2 (1 - t^2) r (1 + 3 c x^2).
  const double r = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, c = 0.044715;
  Value xx = square(b, x);
  Value t = b.create<TanhOp>(b.scale(b.mul(x, b.shift(b.scale(xx, c), 1)), r));
  Value du = b.scale(b.shift(b.scale(xx, 3 * c), 1), r);
  Value slope = b.mul(b.mul(b.scale(x, 0.5), b.shift(b.neg(square(b, t)), 1)), du);
  return b.mul(dy, b.add(b.scale(b.shift(t, 1), 0.5), slope));
}

/// max and min: the operand that `predicate` chooses takes the adjoint, equal operands take half
/// each.
template <ComparePredicate predicate> void extremum(Builder& b, Operation* op) {
  Value lhs = op->getOperand(0), rhs = op->getOperand(1), dy = b.result();
  Value half =
      b.select(b.compare(ComparePredicate::EQ, lhs, rhs), b.scale(dy, 0.5), zeroLike(b, dy));
  if (b.needs(0))
    b.set(0, b.select(b.compare(predicate, lhs, rhs), dy, half));
  if (b.needs(1))
    b.set(1, b.select(b.compare(predicate, rhs, lhs), dy, half));
}

void power(Builder& b, PowOp op) {
  Value x = op.getLhs(), y = op.getRhs();
  Value zero = zeroLike(b, x);
  if (b.needs(0)) {
    Value slope = b.mul(y, b.create<PowOp>(x, b.shift(y, -1)));
    Value constant = b.compare(ComparePredicate::EQ, y, zero);
    b.set(0, b.mul(b.result(), b.select(constant, zero, slope)));
  }
  if (b.needs(1)) {
    Value slope = b.mul(op.getResult(), b.create<LogOp>(x));
    b.set(1, b.mul(b.result(), b.select(isPositive(b, x), slope, zero)));
  }
}

void remainder(Builder& b, RemOp op) {
  Value dy = b.result();
  b.set(0, dy);
  if (!b.needs(1))
    return;
  // What the remainder leaves of x is a multiple of y, so that the quotient of the two is the whole
  // number that x / y, rounded, may be beside.
  Value multiple = b.sub(op.getLhs(), op.getResult());
  Value quotient = b.create<RoundOp>(b.div(multiple, op.getRhs()));
  b.set(1, b.neg(b.mul(dy, quotient)));
}

void select(Builder& b, SelectOp op) {
  Value dy = b.result();
  if (b.needs(1))
    b.set(1, b.select(op.getCondition(), dy, zeroLike(b, dy)));
  if (b.needs(2))
    b.set(2, b.select(op.getCondition(), zeroLike(b, dy), dy));
}

void attachUnaryRules(MLIRContext* context) {
  attachUnaryRule<NegOp, [](Builder& b, NegOp, Value dy) { return b.neg(dy); }>(context);
  attachUnaryRule<AbsOp, [](Builder& b, AbsOp op, Value dy) {
    return b.mul(dy, b.create<SignOp>(op.getOperand()));
  }>(context);
  attachZeroRule<SignOp>(context);
  attachZeroRule<FloorOp>(context);
  attachZeroRule<CeilOp>(context);
  attachZeroRule<RoundOp>(context);
  attachUnaryRule<ExpOp, [](Builder& b, ExpOp op, Value dy) { return b.mul(dy, op.getResult()); }>(
      context);
  attachUnaryRule<Expm1Op, [](Builder& b, Expm1Op op, Value dy) {
    return b.mul(dy, b.shift(op.getResult(), 1));
  }>(context);
  attachUnaryRule<LogOp, [](Builder& b, LogOp op, Value dy) { return b.div(dy, op.getOperand()); }>(
      context);
  attachUnaryRule<Log1pOp, [](Builder& b, Log1pOp op, Value dy) {
    return b.div(dy, b.shift(op.getOperand(), 1));
  }>(context);
  attachUnaryRule<SqrtOp, [](Builder& b, SqrtOp op, Value dy) {
    // The chain rule has 0 / 0 for a length or a deviation of 0, where PyTorch's gradient is 0.
    Value y = op.getResult(), zero = zeroLike(b, y);
    return b.select(b.compare(ComparePredicate::EQ, y, zero), zero, b.div(b.scale(dy, 0.5), y));
  }>(context);
  attachUnaryRule<RsqrtOp, [](Builder& b, RsqrtOp op, Value dy) {
    Value y = op.getResult();
    return b.mul(b.scale(dy, -0.5), b.mul(y, square(b, y)));
  }>(context);
  attachUnaryRule<SinOp, [](Builder& b, SinOp op, Value dy) {
    return b.mul(dy, b.create<CosOp>(op.getOperand()));
  }>(context);
  attachUnaryRule<CosOp, [](Builder& b, CosOp op, Value dy) {
    return b.neg(b.mul(dy, b.create<SinOp>(op.getOperand())));
  }>(context);
  attachUnaryRule<AtanOp, [](Builder& b, AtanOp op, Value dy) {
    return b.div(dy, b.shift(square(b, op.getOperand()), 1));
  }>(context);
  attachUnaryRule<TanhOp, [](Builder& b, TanhOp op, Value dy) {
    return b.mul(dy, b.shift(b.neg(square(b, op.getResult())), 1));
  }>(context);
  attachUnaryRule<SigmoidOp, [](Builder& b, SigmoidOp op, Value dy) {
    Value y = op.getResult();
    return b.mul(dy, b.mul(y, b.shift(b.neg(y), 1)));
  }>(context);
  attachUnaryRule<ErfOp, [](Builder& b, ErfOp op, Value dy) {
    Value density = b.exp(b.neg(square(b, op.getOperand())));
    return b.mul(dy, b.scale(density, 2 * std::numbers::inv_sqrtpi));
  }>(context);
  attachUnaryRule<ReluOp, [](Builder& b, ReluOp op, Value dy) {
    return b.select(isPositive(b, op.getResult()), dy, zeroLike(b, dy));
  }>(context);
  attachUnaryRule<SiluOp, [](Builder& b, SiluOp op, Value dy) {
    Value s = b.create<SigmoidOp>(op.getOperand());
    Value inner = b.mul(op.getOperand(), b.shift(b.neg(s), 1));
    return b.mul(dy, b.mul(s, b.shift(inner, 1)));
  }>(context);
  attachUnaryRule<SoftplusOp, [](Builder& b, SoftplusOp op, Value dy) {
    return b.mul(dy, b.create<SigmoidOp>(op.getOperand()));
  }>(context);
  attachUnaryRule<GeluOp, gelu>(context);
  attachUnaryRule<LeakyReluOp, [](Builder& b, LeakyReluOp op, Value dy) {
    return b.select(isPositive(b, op.getOperand()), dy,
                    b.scale(dy, op.getAlpha().convertToDouble()));
  }>(context);
  attachUnaryRule<EluOp, [](Builder& b, EluOp op, Value dy) {
    // alpha e^x = y + alpha below 0.
    Value slope = b.shift(op.getResult(), op.getAlpha().convertToDouble());
    return b.select(isPositive(b, op.getOperand()), dy, b.mul(dy, slope));
  }>(context);
  attachUnaryRule<HardSigmoidOp, [](Builder& b, HardSigmoidOp op, Value dy) {
    Value y = op.getResult();
    Value inside =
        b.create<AndOp>(isPositive(b, y), b.compare(ComparePredicate::LT, y, b.splatLike(y, 1)));
    return b.select(inside, b.scale(dy, op.getAlpha().convertToDouble()), zeroLike(b, dy));
  }>(context);
  attachUnaryRule<ConvertOp, [](Builder& b, ConvertOp op, Value dy) {
    return b.convert(dy, tensorType(op.getOperand()).getElementType());
  }>(context);
}

} // namespace

void attachElementwiseRules(MLIRContext* context) {
  attachUnaryRules(context);
  attachRule<AddOp, [](Builder& b, AddOp) {
    b.set(0, b.result());
    b.set(1, b.result());
  }>(context);
  attachRule<SubOp, [](Builder& b, SubOp) {
    b.set(0, b.result());
    if (b.needs(1))
      b.set(1, b.neg(b.result()));
  }>(context);
  attachRule<MulOp, [](Builder& b, MulOp op) {
    if (b.needs(0))
      b.set(0, b.mul(b.result(), op.getRhs()));
    if (b.needs(1))
      b.set(1, b.mul(b.result(), op.getLhs()));
  }>(context);
  attachRule<DivOp, [](Builder& b, DivOp op) {
    Value quotient = b.div(b.result(), op.getRhs());
    b.set(0, quotient);
    if (b.needs(1))
      b.set(1, b.neg(b.mul(quotient, op.getResult())));
  }>(context);
  attachRule<MaxOp, [](Builder& b, MaxOp op) { extremum<ComparePredicate::GT>(b, op); }>(context);
  attachRule<MinOp, [](Builder& b, MinOp op) { extremum<ComparePredicate::LT>(b, op); }>(context);
  attachRule<PowOp, power>(context);
  attachRule<RemOp, remainder>(context);
  attachRule<SelectOp, select>(context);
}

} // namespace titan::autodiff
