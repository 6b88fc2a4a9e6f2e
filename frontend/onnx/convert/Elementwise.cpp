// Arithmetic, comparison, logic and casts, with NumPy broadcasting made explicit.
#include "frontend/onnx/convert/Conversion.h"
#include "frontend/onnx/name/FxArguments.h"

#include <algorithm>
#include <limits>

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

/// An op of one floating operand.
template <typename Op> Status unary(Conversion& c) {
  return c.give(c.create<Op>(TITAN_TRY(c.floatOperand(0))));
}

/// Floats as they are; of integers the op is the identity.
template <typename Op> Status rounding(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  return c.give(c.isFloat(x) ? Value(c.create<Op>(x)) : x);
}

template <typename Op> Status numeric(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  if (tensorType(x).getElementType().isInteger(1))
    return c.error("operand is boolean");
  return c.give(c.create<Op>(x));
}

Result<std::vector<Value>> numbers(Conversion& c, ArrayRef<size_t> operands) {
  std::vector<Value> values = TITAN_TRY(c.broadcastOperands(operands));
  for (Value value : values)
    if (value.getType() != values.front().getType() ||
        tensorType(value).getElementType().isInteger(1))
      return c.error("operands must be numbers of one type");
  return values;
}

template <typename Op> Status binary(Conversion& c) {
  auto values = TITAN_TRY(numbers(c, {0, 1}));
  return c.give(c.create<Op>(values[0], values[1]));
}

/// The shape to which two operands broadcast.
Result<Shape> commonShape(Conversion& c, Value a, Value b) {
  std::optional<Shape> shape = broadcastShape(c.shapeOf(a), c.shapeOf(b));
  if (!shape)
    return c.error("operands {} and {} do not broadcast", toString(c.shapeOf(a)),
                   toString(c.shapeOf(b)));
  return *shape;
}

/// Is the node a part of what torch.export makes of scaled_dot_product_attention?
bool isOfAttention(const Node& node) {
  return scopeOf(node).target.starts_with("aten.scaled_dot_product_attention.");
}

/// Where attention drops, torch.export to opset 23 adds a boolean mask to the scores, which is no
/// sum in ONNX. What it forbids is minus infinity in PyTorch.
Status sum(Conversion& c) {
  Value scores = TITAN_TRY(c.operand(0)), mask = TITAN_TRY(c.operand(1));
  if (!c.isFloat(scores) || !tensorType(mask).getElementType().isInteger(1) ||
      !isOfAttention(c.node))
    return binary<AddOp>(c);
  const Shape shape = TITAN_TRY(commonShape(c, scores, mask));
  Value zero = c.splat(tensorType(mask).clone(tensorType(scores).getElementType()), 0);
  Value bias = c.select(mask, zero, c.splatLike(zero, -std::numeric_limits<double>::infinity()));
  return c.give(c.add(c.broadcastTo(scores, shape), c.broadcastTo(bias, shape)));
}

template <typename Op> Status variadic(Conversion& c) {
  auto all = llvm::to_vector(llvm::seq<size_t>(0, c.count()));
  auto values = TITAN_TRY(numbers(c, all));
  if (values.empty())
    return c.error("has no operands");
  Value total = values.front();
  for (Value value : llvm::drop_begin(values))
    total = c.create<Op>(total, value);
  return c.give(total);
}

/// `x`, or the number `bound` where x is below it. No gradient passes where they are equal: so are
/// the slopes of torch.clamp for numbers. Where a tensor is the bound they are torch.maximum's.
Value atLeast(Conversion& c, Value x, double bound) {
  constexpr double kNone = -1e30; // no value is there: it keeps sums of masks from being -inf
  Value low = c.splatLike(x, bound);
  if (bound <= kNone)
    return c.create<MaxOp>(x, low);
  if (bound == 0)
    return c.create<ReluOp>(x);
  return c.select(c.compare(ComparePredicate::LE, x, low), low, x);
}

Value atMost(Conversion& c, Value x, double bound) {
  Value high = c.splatLike(x, bound);
  return c.select(c.compare(ComparePredicate::GE, x, high), high, x);
}

/// Operand i, where it is one number of floats.
std::optional<double> numberAt(Conversion& c, size_t i) {
  const HostTensor* host = c.constant(i);
  return host && host->size() == 1 && host->isFloat() ? std::optional(host->real(0)) : std::nullopt;
}

/// torch.export writes torch.clamp with numbers as Max and Min.
bool isClamp(Conversion& c) {
  Scope scope = scopeOf(c.node);
  return scope.target.starts_with("aten.clamp.") && scope.operands.empty() &&
         std::ranges::any_of(scope.values,
                             [](const FxOperand& value) { return namesNumbers(value.mangled); });
}

template <typename Op, Value limit(Conversion&, Value, double)> Status extremum(Conversion& c) {
  std::optional<double> bound =
      c.count() == 2 && isClamp(c) ? numberAt(c, 1) : std::optional<double>();
  if (!bound)
    return variadic<Op>(c);
  return c.give(limit(c, TITAN_TRY(c.floatOperand(0)), *bound));
}

Status mean(Conversion& c) {
  TITAN_TRY(variadic<AddOp>(c));
  if (!c.isFloat(c.results[0]))
    return c.error("operands must be floating");
  return c.give(c.scale(c.results[0], 1.0 / static_cast<double>(c.count())));
}

Status power(Conversion& c) {
  // The result has the base's type; the exponent may have any.
  Value base = TITAN_TRY(c.floatOperand(0));
  Value exponent = c.convert(TITAN_TRY(c.operand(1)), tensorType(base).getElementType());
  const Shape shape = TITAN_TRY(commonShape(c, base, exponent));
  if (const HostTensor* known = c.constant(1); known && known->size() == 1) {
    // Squares and roots are exact and cheap as such.
    Value x = c.broadcastTo(base, shape);
    double value = known->real(0);
    if (value == 1)
      return c.give(x);
    if (value == 2)
      return c.give(c.mul(x, x));
    if (value == 0.5)
      return c.give(c.create<SqrtOp>(x));
    if (value == -1)
      return c.give(c.div(c.splatLike(x, 1), x));
  }
  return c.give(c.create<PowOp>(c.broadcastTo(base, shape), c.broadcastTo(exponent, shape)));
}

/// With the sign of the divisor, or with fmod = 1 of the dividend, as floats always.
Status modulo(Conversion& c) {
  auto values = TITAN_TRY(numbers(c, {0, 1}));
  Value x = values[0], y = values[1];
  const bool ofDividend = c.node.integer("fmod", 0) != 0;
  if (c.isFloat(x)) {
    if (!ofDividend)
      return c.error("the remainder of floats has the sign of the dividend: fmod must be 1");
    return c.give(c.create<RemOp>(x, y));
  }
  Value rest = c.sub(x, c.mul(c.div(x, y), y)); // the quotient is truncated
  if (ofDividend)
    return c.give(rest);
  Value zero = c.splatLike(x, 0);
  auto isNegative = [&](Value value) { return c.compare(ComparePredicate::LT, value, zero); };
  Value isOther = c.create<AndOp>(c.compare(ComparePredicate::NE, rest, zero),
                                  c.compare(ComparePredicate::NE, isNegative(rest), isNegative(y)));
  return c.give(c.select(isOther, c.add(rest, y), rest));
}

Status reciprocal(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  return c.give(c.div(c.splatLike(x, 1), x));
}

template <ComparePredicate predicate> Status compare(Conversion& c) {
  auto values = TITAN_TRY(c.broadcastOperands({0, 1}));
  if (values[0].getType() != values[1].getType())
    return c.error("operands must be of one type");
  return c.give(c.compare(predicate, values[0], values[1]));
}

Result<std::vector<Value>> booleans(Conversion& c, ArrayRef<size_t> operands) {
  auto values = TITAN_TRY(c.broadcastOperands(operands));
  for (Value value : values)
    if (!tensorType(value).getElementType().isInteger(1))
      return c.error("operands must be boolean");
  return values;
}

template <typename Op> Status logical(Conversion& c) {
  auto values = TITAN_TRY(booleans(c, {0, 1}));
  return c.give(c.create<Op>(values[0], values[1]));
}

Status exclusiveOr(Conversion& c) {
  auto values = TITAN_TRY(booleans(c, {0, 1}));
  return c.give(c.compare(ComparePredicate::NE, values[0], values[1]));
}

Status logicalNot(Conversion& c) {
  auto values = TITAN_TRY(booleans(c, {0}));
  return c.give(c.create<NotOp>(values[0]));
}

/// Is operand 2 what torch.export writes below opset 23 where a boolean mask of
/// scaled_dot_product_attention forbids? It is the lowest number, in PyTorch minus infinity: a
/// query whose keys are all forbidden has no result.
bool forbidsAttention(Conversion& c) {
  const HostTensor* lowest = c.constant(2);
  return lowest && lowest->isFloat() && lowest->size() == 1 && lowest->reals[0] < -6e4 &&
         isOfAttention(c.node);
}

Status where(Conversion& c) {
  auto values = TITAN_TRY(c.broadcastOperands({0, 1, 2}));
  if (!tensorType(values[0]).getElementType().isInteger(1) ||
      values[1].getType() != values[2].getType())
    return c.error("needs a boolean condition and two operands of one type");
  if (forbidsAttention(c))
    values[2] = c.splatLike(values[2], -std::numeric_limits<double>::infinity());
  return c.give(c.select(values[0], values[1], values[2]));
}

Status isNaN(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  return c.give(c.compare(ComparePredicate::NE, x, x));
}

Status isInf(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  bool positive = c.node.integer("detect_positive", 1) != 0;
  bool negative = c.node.integer("detect_negative", 1) != 0;
  double infinity = std::numeric_limits<double>::infinity();
  if (positive && negative)
    x = c.create<AbsOp>(x);
  else if (!positive && !negative)
    return c.error("detects neither positive nor negative infinity");
  return c.give(
      c.compare(ComparePredicate::EQ, x, c.splatLike(x, positive ? infinity : -infinity)));
}

Status clip(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  if (tensorType(x).getElementType().isInteger(1))
    return c.error("operand is boolean");
  // The bounds: attributes up to opset 10, then optional scalar operands.
  auto number = [&](size_t i, const char* attribute) -> std::optional<double> {
    if (!c.isFloat(x) || (!c.has(i) && !c.node.find(attribute)))
      return std::nullopt;
    return c.has(i) ? numberAt(c, i) : std::optional(c.node.real(attribute, 0));
  };
  auto bound = [&](size_t i, const char* attribute) -> Result<Value> {
    if (c.has(i)) {
      Value value = TITAN_TRY(c.operand(i));
      if (tensorType(value).getNumElements() != 1 ||
          tensorType(value).getElementType() != tensorType(x).getElementType())
        return c.error("'{}' must be a scalar of the operand's type", attribute);
      return c.broadcastTo(c.rankOf(value) ? c.reshape(value, {}) : value, c.shapeOf(x));
    }
    if (c.node.find(attribute))
      return c.splatLike(x, c.node.real(attribute, 0));
    return Value();
  };
  Value low = TITAN_TRY(bound(1, "min")), high = TITAN_TRY(bound(2, "max"));
  if (std::optional<double> least = number(1, "min"))
    x = atLeast(c, x, *least);
  else if (low)
    x = c.create<MaxOp>(x, low);
  if (std::optional<double> most = number(2, "max"))
    x = atMost(c, x, *most);
  else if (high)
    x = c.create<MinOp>(x, high);
  return c.give(x);
}

Status castTo(Conversion& c, std::optional<DType> dtype) {
  if (!dtype)
    return c.error("element type {} is not supported", onnxTypeName(c.node.integer("to", 0)));
  Value x = TITAN_TRY(c.operand(0));
  return c.give(c.convert(x, elementTypeOf(c.builder.getContext(), *dtype)));
}

Status cast(Conversion& c) { return castTo(c, c.namedType("to")); }

Status castLike(Conversion& c) {
  if (const HostTensor* like = c.constant(1))
    return castTo(c, like->dtype);
  return castTo(c, dtypeOf(tensorType(TITAN_TRY(c.operand(1))).getElementType()));
}

Status identity(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  return c.give(isDetach(c.node) && c.isFloat(x) ? Value(c.create<DetachOp>(x)) : x);
}

} // namespace

ArrayRef<ConverterEntry> elementwiseConverters() {
  static const ConverterEntry table[] = {
      {"Abs", 6, numeric<AbsOp>, ""},
      {"Add", 7, sum, ""},
      {"And", 7, logical<AndOp>, ""},
      {"Cast", 6, cast, "not to or from strings, float8 and 4-bit types"},
      {"CastLike", 15, castLike, "as Cast"},
      {"Ceil", 6, rounding<CeilOp>, ""},
      {"Clip", 6, clip, ""},
      {"Cos", 7, unary<CosOp>, ""},
      {"Div", 7, binary<DivOp>, ""},
      {"Equal", 7, compare<ComparePredicate::EQ>, ""},
      {"Erf", 9, unary<ErfOp>, ""},
      {"Exp", 6, unary<ExpOp>, ""},
      {"Floor", 6, rounding<FloorOp>, ""},
      {"Greater", 7, compare<ComparePredicate::GT>, ""},
      {"GreaterOrEqual", 12, compare<ComparePredicate::GE>, ""},
      {"Identity", 1, identity, ""},
      {"IsInf", 10, isInf, ""},
      {"IsNaN", 9, isNaN, ""},
      {"Less", 7, compare<ComparePredicate::LT>, ""},
      {"LessOrEqual", 12, compare<ComparePredicate::LE>, ""},
      {"Log", 6, unary<LogOp>, ""},
      {"Max", 8, extremum<MaxOp, atLeast>, ""},
      {"Mean", 8, mean, ""},
      {"Min", 8, extremum<MinOp, atMost>, ""},
      {"Mod", 10, modulo, "floats with fmod = 1"},
      {"Mul", 7, binary<MulOp>, ""},
      {"Neg", 6, numeric<NegOp>, ""},
      {"Not", 1, logicalNot, ""},
      {"Or", 7, logical<OrOp>, ""},
      {"Pow", 7, power, "floating base"},
      {"Reciprocal", 6, reciprocal, ""},
      {"Round", 11, rounding<RoundOp>, ""},
      {"Sign", 9, numeric<SignOp>, ""},
      {"Sin", 7, unary<SinOp>, ""},
      {"Sqrt", 6, unary<SqrtOp>, ""},
      {"Sub", 7, binary<SubOp>, ""},
      {"Sum", 8, variadic<AddOp>, ""},
      {"Where", 9, where, ""},
      {"Xor", 7, exclusiveOr, ""},
  };
  return table;
}

} // namespace titan::frontend
