#include "frontend/onnx/fold/FoldRules.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace titan::frontend {

namespace {

int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }

/// Integer arithmetic wraps, as in the compiled program; a division that has no result gives
/// nothing.
std::optional<int64_t> integerOp(const std::string& op, const Node& node, int64_t a, int64_t b) {
  auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  if (op == "Add" || op == "Sum")
    return wrap(x + y);
  if (op == "Sub")
    return wrap(x - y);
  if (op == "Mul")
    return wrap(x * y);
  if (op == "Max")
    return std::max(a, b);
  if (op == "Min")
    return std::min(a, b);
  if (op == "Pow")
    return HostTensor{DType::F64, {}, {}, {std::pow(double(a), double(b))}}.integer(0);
  if (op == "And")
    return a && b;
  if (op == "Or")
    return a || b;
  if (op == "Xor")
    return (a != 0) != (b != 0);
  if (b == 0 || (a == INT64_MIN && b == -1))
    return std::nullopt;
  if (op == "Div")
    return a / b;
  if (op == "Mod") {
    int64_t remainder = a % b;
    // The sign of the divisor (Python), or with fmod = 1 of the dividend (C).
    bool adjust = node.integer("fmod", 0) == 0 && remainder != 0 && (remainder < 0) != (b < 0);
    return adjust ? remainder + b : remainder;
  }
  return std::nullopt;
}

std::optional<double> realOp(const std::string& op, double a, double b) {
  if (op == "Add" || op == "Sum")
    return a + b;
  if (op == "Sub")
    return a - b;
  if (op == "Mul")
    return a * b;
  if (op == "Div")
    return a / b;
  if (op == "Max")
    return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b);
  if (op == "Min")
    return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b);
  if (op == "Pow")
    return std::pow(a, b);
  if (op == "Mod")
    return std::fmod(a, b);
  return std::nullopt;
}

template <typename T> std::optional<bool> compareOp(const std::string& op, T a, T b) {
  if (op == "Equal")
    return a == b;
  if (op == "Less")
    return a < b;
  if (op == "LessOrEqual")
    return a <= b;
  if (op == "Greater")
    return a > b;
  if (op == "GreaterOrEqual")
    return a >= b;
  return std::nullopt;
}

std::optional<double> unaryReal(const std::string& op, double x) {
  static const std::map<std::string, double (*)(double)> table = {
      {"Sqrt", std::sqrt}, {"Exp", std::exp},     {"Log", std::log},         {"Floor", std::floor},
      {"Ceil", std::ceil}, {"Erf", std::erf},     {"Tanh", std::tanh},       {"Sin", std::sin},
      {"Cos", std::cos},   {"Abs", std::fabs},    {"Round", std::nearbyint}, {"Tan", std::tan},
      {"Asin", std::asin}, {"Acos", std::acos},   {"Atan", std::atan},       {"Sinh", std::sinh},
      {"Cosh", std::cosh}, {"Asinh", std::asinh}, {"Acosh", std::acosh},     {"Atanh", std::atanh},
  };
  if (auto it = table.find(op); it != table.end())
    return it->second(x);
  if (op == "Neg")
    return -x;
  if (op == "Reciprocal")
    return 1 / x;
  if (op == "Sign")
    return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0));
  return std::nullopt;
}

std::optional<int64_t> unaryInteger(const std::string& op, int64_t x) {
  if (op == "Neg")
    return wrap(0 - static_cast<uint64_t>(x));
  if (op == "Abs")
    return x < 0 ? wrap(0 - static_cast<uint64_t>(x)) : x;
  if (op == "Sign")
    return (x > 0) - (x < 0);
  if (op == "Not")
    return x == 0;
  return std::nullopt;
}

/// IsNaN and IsInf: floats to booleans.
std::optional<HostTensor> classify(const Node& node, const HostTensor& x) {
  bool positive = node.integer("detect_positive", 1) != 0;
  bool negative = node.integer("detect_negative", 1) != 0;
  HostTensor out = HostTensor::empty(DType::Bool, x.shape);
  for (double value : x.reals) {
    bool infinite = std::isinf(value) && (value > 0 ? positive : negative);
    out.push(int64_t(node.opType == "IsNaN" ? std::isnan(value) : infinite));
  }
  return out;
}

std::optional<HostTensor> unary(const Node& node, const HostTensor& x) {
  if ((node.opType == "IsNaN" || node.opType == "IsInf") && x.isFloat())
    return classify(node, x);
  // Whether there is a rule depends on the op alone: try it before any element is read.
  if (x.isFloat() ? !unaryReal(node.opType, 1) : !unaryInteger(node.opType, 1))
    return std::nullopt;
  HostTensor out = HostTensor::empty(x.dtype, x.shape);
  for (int64_t i = 0, count = x.size(); i < count; ++i) {
    if (x.isFloat())
      out.push(*unaryReal(node.opType, x.reals[i]));
    else
      out.push(*unaryInteger(node.opType, x.integers[i]));
  }
  return out;
}

std::optional<HostTensor> binary(const Node& node, const HostTensor& x, const HostTensor& y,
                                 int64_t largest) {
  std::optional<Shape> shape = broadcastShape(x.shape, y.shape);
  if (!shape || elementCount(*shape) > largest || x.dtype != y.dtype)
    return std::nullopt;
  HostTensor a = broadcastHost(x, *shape), b = broadcastHost(y, *shape);
  bool comparison = compareOp(node.opType, 0, 0).has_value();
  HostTensor out = HostTensor::empty(comparison ? DType::Bool : x.dtype, *shape);
  for (int64_t i = 0, count = out.size(); i < count; ++i) {
    if (comparison) {
      out.push(int64_t(*(x.isFloat() ? compareOp(node.opType, a.reals[i], b.reals[i])
                                     : compareOp(node.opType, a.integers[i], b.integers[i]))));
    } else if (x.isFloat()) {
      std::optional<double> value = realOp(node.opType, a.reals[i], b.reals[i]);
      if (!value)
        return std::nullopt;
      out.push(*value);
    } else {
      std::optional<int64_t> value = integerOp(node.opType, node, a.integers[i], b.integers[i]);
      if (!value)
        return std::nullopt;
      out.push(*value);
    }
  }
  return out;
}

HostTensor cast(const HostTensor& x, DType dtype) {
  HostTensor out = HostTensor::empty(dtype, x.shape);
  for (int64_t i = 0, count = x.size(); i < count; ++i) {
    if (x.isFloat())
      out.push(x.reals[i]);
    else
      out.push(x.integers[i]);
  }
  return out;
}

/// Between the operands behind the first, either of which may be absent.
std::optional<HostTensor> clip(const HostInputs& inputs, int64_t largest) {
  std::optional<HostTensor> clipped = *inputs[0];
  for (size_t i = 1; i < inputs.size() && clipped; ++i) {
    Node bound;
    bound.opType = i == 1 ? "Max" : "Min";
    if (inputs[i])
      clipped = binary(bound, *clipped, *inputs[i], largest);
  }
  return clipped;
}

std::optional<HostTensor> where(const HostTensor& condition, const HostTensor& x,
                                const HostTensor& y, int64_t largest) {
  std::optional<Shape> both = broadcastShape(x.shape, y.shape);
  std::optional<Shape> shape = both ? broadcastShape(*both, condition.shape) : std::nullopt;
  if (!shape || elementCount(*shape) > largest || x.dtype != y.dtype || condition.isFloat())
    return std::nullopt;
  HostTensor c = broadcastHost(condition, *shape), a = broadcastHost(x, *shape),
             b = broadcastHost(y, *shape);
  HostTensor out = HostTensor::empty(x.dtype, *shape);
  for (int64_t i = 0, count = out.size(); i < count; ++i) {
    out.pushFrom(c.integers[i] ? a : b, i);
  }
  return out;
}

} // namespace

Folded foldElementwise(const Node& node, const HostInputs& inputs, int64_t largest) {
  const std::string& op = node.opType;
  auto result = [](std::optional<HostTensor> value) {
    return value ? one(std::move(*value)) : nothing();
  };
  if (inputs.empty() || !inputs[0])
    return nothing();
  if (op == "Identity" && inputs.size() == 1)
    return result(*inputs[0]);
  if (op == "Cast" && inputs.size() == 1) {
    const std::optional<DType> dtype = elementType(node.integer("to", 0));
    return result(dtype ? std::optional(cast(*inputs[0], *dtype)) : std::nullopt);
  }
  if (inputs.size() == 1 && op != "Sum" && op != "Max" && op != "Min")
    return result(unary(node, *inputs[0]));
  if (op == "Clip")
    return result(clip(inputs, largest));
  for (const HostTensor* input : inputs)
    if (!input)
      return nothing();
  if (op == "CastLike" && inputs.size() == 2)
    return result(cast(*inputs[0], inputs[1]->dtype));
  if (op == "Where" && inputs.size() == 3)
    return result(where(*inputs[0], *inputs[1], *inputs[2], largest));
  if (op == "Sum" || op == "Max" || op == "Min") {
    std::optional<HostTensor> total = *inputs[0];
    for (size_t i = 1; i < inputs.size() && total; ++i)
      total = binary(node, *total, *inputs[i], largest);
    return result(std::move(total));
  }
  static constexpr const char* kBinary[] = {
      "Add", "Sub", "Mul",   "Div",  "Pow",         "Mod",     "And",
      "Or",  "Xor", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"};
  bool known = std::find(std::begin(kBinary), std::end(kBinary), op) != std::end(kBinary);
  if (!known || inputs.size() != 2)
    return nothing();
  return result(binary(node, *inputs[0], *inputs[1], largest));
}

} // namespace titan::frontend
