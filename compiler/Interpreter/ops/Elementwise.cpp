// Meaning of the elementwise ops.
#include "compiler/Interpreter/Models.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace titan::ir;

namespace titan::interpreter {

namespace {

double sigmoid(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

/// `function(x)` over a float operand, for ops whose function reads attributes.
template <typename Function>
LogicalResult mapFloats(Operation* op, Frame& frame, Function function) {
  Tensor result = frame.get(op->getOperand(0));
  for (double& x : result.mutableFloats())
    x = function(x);
  frame.set(op->getResult(0), std::move(result));
  return success();
}

LogicalResult gelu(GeluOp op, Frame& frame) {
  if (op.getForm() == GeluForm::Erf)
    return mapFloats(op, frame,
                     [](double x) { return x / 2 * (1 + std::erf(x / std::numbers::sqrt2)); });
  return mapFloats(op, frame, [](double x) {
    double root = std::sqrt(2 / std::numbers::pi);
    return x / 2 * (1 + std::tanh(root * (x + 0.044715 * x * x * x)));
  });
}

LogicalResult leakyRelu(LeakyReluOp op, Frame& frame) {
  double alpha = op.getAlpha().convertToDouble();
  return mapFloats(op, frame, [=](double x) { return x > 0 ? x : alpha * x; });
}

LogicalResult elu(EluOp op, Frame& frame) {
  double alpha = op.getAlpha().convertToDouble();
  return mapFloats(op, frame, [=](double x) { return x > 0 ? x : alpha * std::expm1(x); });
}

LogicalResult hardSigmoid(HardSigmoidOp op, Frame& frame) {
  double alpha = op.getAlpha().convertToDouble(), beta = op.getBeta().convertToDouble();
  return mapFloats(op, frame,
                   [=](double x) { return std::max(0.0, std::min(1.0, alpha * x + beta)); });
}

LogicalResult isFinite(IsFiniteOp op, Frame& frame) {
  const Tensor& operand = frame.get(op.getOperand());
  Tensor result(cast<ShapedType>(op.getType()));
  for (auto [x, y] : llvm::zip_equal(operand.floats(), result.mutableIntegers()))
    y = std::isfinite(x);
  frame.setExact(op, std::move(result));
  return success();
}

/// Truncated toward zero into the range of `type`; NaN becomes 0.
int64_t saturate(double value, IntegerType type) {
  if (std::isnan(value))
    return 0;
  unsigned width = type.getWidth();
  double low = type.isUnsigned() ? 0 : -std::ldexp(1, width - 1);
  double high = std::ldexp(1, type.isUnsigned() ? width : width - 1); // first value above the range
  value = std::trunc(value);
  if (value < low)
    return static_cast<int64_t>(low);
  if (value >= high)
    return type.isUnsigned() ? static_cast<int64_t>(~uint64_t(0) >> (64 - width))
                             : static_cast<int64_t>(~uint64_t(0) >> (65 - width));
  return static_cast<int64_t>(value);
}

LogicalResult convert(ConvertOp op, Frame& frame) {
  const Tensor& operand = frame.get(op.getOperand());
  auto type = cast<ShapedType>(op.getType());
  Tensor result(type);
  auto integer = dyn_cast<IntegerType>(type.getElementType());
  if (!integer) {
    for (auto [i, x] : llvm::enumerate(result.mutableFloats()))
      x = operand.number(i);
  } else if (integer.getWidth() == 1) {
    for (auto [i, x] : llvm::enumerate(result.mutableIntegers()))
      x = operand.number(i) != 0;
  } else if (operand.isFloat()) {
    for (auto [x, value] : llvm::zip_equal(result.mutableIntegers(), operand.floats()))
      x = saturate(value, integer);
  } else {
    llvm::copy(operand.integers(), result.mutableIntegers().begin());
  }
  frame.set(op, std::move(result));
  return success();
}

/// Of integers 0 by zero, and the least number by -1 wraps.
LogicalResult divide(DivOp op, Frame& frame) {
  Tensor result = frame.get(op.getLhs());
  const Tensor& divisor = frame.get(op.getRhs());
  if (result.isFloat()) {
    for (auto [x, y] : llvm::zip_equal(result.mutableFloats(), divisor.floats()))
      x /= y;
  } else {
    for (auto [x, y] : llvm::zip_equal(result.mutableIntegers(), divisor.integers()))
      x = y == 0 ? 0 : y == -1 ? static_cast<int64_t>(0 - static_cast<uint64_t>(x)) : x / y;
  }
  frame.set(op, std::move(result));
  return success();
}

template <typename T> bool holds(ComparePredicate predicate, T x, T y) {
  switch (predicate) {
  case ComparePredicate::EQ:
    return x == y;
  case ComparePredicate::NE:
    return x != y;
  case ComparePredicate::LT:
    return x < y;
  case ComparePredicate::LE:
    return x <= y;
  case ComparePredicate::GT:
    return x > y;
  case ComparePredicate::GE:
    return x >= y;
  }
  return false;
}

LogicalResult compare(CompareOp op, Frame& frame) {
  const Tensor &lhs = frame.get(op.getLhs()), &rhs = frame.get(op.getRhs());
  Tensor result(cast<ShapedType>(op.getType()));
  auto evaluate = [&](auto x, auto y) {
    for (auto [a, b, out] : llvm::zip_equal(x, y, result.mutableIntegers()))
      out = holds(op.getPredicate(), a, b);
  };
  if (lhs.isFloat())
    evaluate(lhs.floats(), rhs.floats());
  else
    evaluate(lhs.integers(), rhs.integers());
  frame.setExact(op, std::move(result));
  return success();
}

LogicalResult select(SelectOp op, Frame& frame) {
  const Tensor& onFalse = frame.get(op.getOnFalse());
  Tensor result = frame.get(op.getOnTrue());
  auto choose = [&](auto values, auto others) {
    for (auto [condition, x, other] :
         llvm::zip_equal(frame.get(op.getCondition()).integers(), values, others))
      if (!condition)
        x = other;
  };
  if (result.isFloat())
    choose(result.mutableFloats(), onFalse.floats());
  else
    choose(result.mutableIntegers(), onFalse.integers());
  frame.setExact(op, std::move(result));
  return success();
}

} // namespace

void attachElementwise(MLIRContext* context) {
  // Integers wrap: arithmetic on them is unsigned.
  attachUnary<NegOp, [](auto x) { return static_cast<decltype(x)>(-x); }>(context); // -0 of +0
  attachUnary<AbsOp, [](auto x) { return x < 0 ? static_cast<decltype(x)>(-x) : x; }>(context);
  attachUnary<SignOp, [](auto x) { return x > 0   ? decltype(x)(1)
                                          : x < 0 ? decltype(x)(-1)
                                                  : x; }>(
      context);
  attachUnary<FloorOp, [](double x) { return std::floor(x); }>(context);
  attachUnary<CeilOp, [](double x) { return std::ceil(x); }>(context);
  attachUnary<RoundOp, [](double x) { return std::nearbyint(x); }>(context);
  attachUnary<ExpOp, [](double x) { return std::exp(x); }>(context);
  attachUnary<Expm1Op, [](double x) { return std::expm1(x); }>(context);
  attachUnary<LogOp, [](double x) { return std::log(x); }>(context);
  attachUnary<Log1pOp, [](double x) { return std::log1p(x); }>(context);
  attachUnary<SqrtOp, [](double x) { return std::sqrt(x); }>(context);
  attachUnary<SinOp, [](double x) { return std::sin(x); }>(context);
  attachUnary<CosOp, [](double x) { return std::cos(x); }>(context);
  attachUnary<AtanOp, [](double x) { return std::atan(x); }>(context);
  attachUnary<TanhOp, [](double x) { return std::tanh(x); }>(context);
  attachUnary<SigmoidOp, [](double x) { return sigmoid(x); }>(context);
  attachUnary<ErfOp, [](double x) { return std::erf(x); }>(context);
  attachUnary<ReluOp, [](double x) { return x < 0 ? 0 : x; }>(context);
  attachUnary<SiluOp, [](double x) { return x * sigmoid(x); }>(context);
  attachUnary<SoftplusOp, [](double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  }>(context);
  attachUnary<NotOp, [](auto x) { return static_cast<decltype(x)>(!x); }>(context);
  attach<RsqrtOp, [](RsqrtOp op, Frame& frame) {
    // Two roundings, as the op says: of the root and of the quotient.
    Type element = getElementTypeOrSelf(op.getType());
    return mapFloats(op, frame, [&](double x) { return 1 / frame.round(std::sqrt(x), element); });
  }>(context);
  attach<GeluOp, gelu>(context);
  attach<LeakyReluOp, leakyRelu>(context);
  attach<EluOp, elu>(context);
  attach<HardSigmoidOp, hardSigmoid>(context);
  attach<IsFiniteOp, isFinite>(context);
  attach<ConvertOp, convert>(context);

  attachBinary<AddOp, [](auto x, auto y) { return static_cast<decltype(x)>(x + y); }>(context);
  attachBinary<SubOp, [](auto x, auto y) { return static_cast<decltype(x)>(x - y); }>(context);
  attachBinary<MulOp, [](auto x, auto y) { return static_cast<decltype(x)>(x * y); }>(context);
  attach<DivOp, divide>(context);
  // `x != x` holds for NaN only: it wins on either side.
  attachBinary<MaxOp, [](auto x, auto y) { return x > y || x != x ? x : y; }>(context);
  attachBinary<MinOp, [](auto x, auto y) { return x < y || x != x ? x : y; }>(context);
  attachBinary<PowOp, [](double x, double y) { return std::pow(x, y); }>(context);
  attachBinary<RemOp, [](double x, double y) { return std::fmod(x, y); }>(context);
  attachBinary<AndOp, [](auto x, auto y) { return static_cast<decltype(x)>(x && y); }>(context);
  attachBinary<OrOp, [](auto x, auto y) { return static_cast<decltype(x)>(x || y); }>(context);
  attach<CompareOp, compare>(context);
  attach<SelectOp, select>(context);
}

} // namespace titan::interpreter
