// Trigonometric and hyperbolic functions and their inverses, from the few that titan has. No
// formula subtracts numbers that are nearly equal, and none exceeds the range of floats where its
// result does not; each is smooth where the function is, so that its derivative is the function's.
#include "frontend/onnx/convert/Conversion.h"

#include <limits>
#include <numbers>

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

/// f(x), computed in f32 where the operand is narrower: it would be rounded at each step.
template <Value f(Conversion&, Value)> Status function(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  Type element = tensorType(x).getElementType();
  return c.give(c.convert(f(c, c.convert(x, accumulationType(element))), element));
}

Value root(Conversion& c, Value x) { return c.create<SqrtOp>(x); }
Value log1p(Conversion& c, Value x) { return c.create<Log1pOp>(x); }

Value tan(Conversion& c, Value x) { return c.div(c.create<SinOp>(x), c.create<CosOp>(x)); }

/// 1 - x and 1 + x
std::pair<Value, Value> fromOne(Conversion& c, Value x) {
  return {c.shift(c.neg(x), 1), c.shift(x, 1)};
}

Value atan(Conversion& c, Value x) { return c.create<AtanOp>(x); }

/// The angle of the right triangle with the sides x and sqrt(1 - x^2).
Value asin(Conversion& c, Value x) {
  auto [below, above] = fromOne(c, x);
  return atan(c, c.div(x, root(c, c.mul(below, above))));
}

/// Twice the angle whose tangent is sqrt((1 - x) / (1 + x)).
Value acos(Conversion& c, Value x) {
  auto [below, above] = fromOne(c, x);
  return c.scale(atan(c, root(c, c.div(below, above))), 2);
}

/// sinh x = 2 sinh(x/2) cosh(x/2), which e^(x/2) does not exceed.
Value sinh(Conversion& c, Value x) {
  Value half = c.scale(x, 0.5);
  Value up = c.create<Expm1Op>(half), down = c.create<Expm1Op>(c.neg(half));
  return c.mul(c.scale(c.sub(up, down), 0.5), c.shift(c.add(up, down), 2));
}

/// (e^(x/2))^2 / 2 + (e^(-x/2))^2 / 2
Value cosh(Conversion& c, Value x) {
  Value half = c.scale(x, 0.5);
  auto square = [&](Value root) { return c.mul(c.scale(root, 0.5), root); };
  return c.add(square(c.exp(half)), square(c.exp(c.neg(half))));
}

/// log(x + sqrt(x^2 + 1)) for x >= 0 whose square is in range.
Value asinhOfSmall(Conversion& c, Value x) {
  Value square = c.mul(x, x);
  Value rest = c.div(square, c.shift(root(c, c.shift(square, 1)), 1));
  return log1p(c, c.add(x, rest));
}

/// Odd; from 2^30 on it is log(2 x) in f32 and f64.
Value asinh(Conversion& c, Value x) {
  constexpr double large = 0x1p30;
  Value isNegative = c.compare(ComparePredicate::LT, x, c.splatLike(x, 0));
  Value distance = c.select(isNegative, c.neg(x), x);
  Value isLarge = c.compare(ComparePredicate::GT, distance, c.splatLike(x, large));
  // Neither side may be infinite where the other one is chosen: no adjoint 0 makes that finite.
  Value small = asinhOfSmall(c, c.select(isLarge, c.splatLike(x, 1), distance));
  Value log = c.create<LogOp>(c.select(isLarge, distance, c.splatLike(x, large)));
  Value result = c.select(isLarge, c.shift(log, std::numbers::ln2), small);
  return c.select(isNegative, c.neg(result), result);
}

/// 2 asinh(sqrt((x - 1) / 2)), whose square is in range for all x but infinity.
Value acosh(Conversion& c, Value x) {
  Value result = c.scale(asinhOfSmall(c, root(c, c.scale(c.shift(x, -1), 0.5))), 2);
  Value infinity = c.splatLike(x, std::numeric_limits<double>::infinity());
  return c.select(c.compare(ComparePredicate::EQ, x, infinity), x, result);
}

Value atanh(Conversion& c, Value x) { return c.scale(c.sub(log1p(c, x), log1p(c, c.neg(x))), 0.5); }

} // namespace

ArrayRef<ConverterEntry> functionConverters() {
  static const ConverterEntry table[] = {
      {"Acos", 7, function<acos>, ""}, {"Acosh", 9, function<acosh>, ""},
      {"Asin", 7, function<asin>, ""}, {"Asinh", 9, function<asinh>, ""},
      {"Atan", 7, function<atan>, ""}, {"Atanh", 9, function<atanh>, ""},
      {"Cosh", 9, function<cosh>, ""}, {"Sinh", 9, function<sinh>, ""},
      {"Tan", 7, function<tan>, ""},
  };
  return table;
}

} // namespace titan::frontend
