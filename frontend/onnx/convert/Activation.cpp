// Activations: one titan op where there is one, else the formula of the ONNX specification.
#include "frontend/onnx/convert/Conversion.h"

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

template <typename Op> Status unary(Conversion& c) {
  return c.give(c.create<Op>(TITAN_TRY(c.floatOperand(0))));
}

Status relu(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  if (c.isFloat(x))
    return c.give(c.create<ReluOp>(x));
  if (tensorType(x).getElementType().isInteger(1))
    return c.error("operand is boolean");
  return c.give(c.create<MaxOp>(x, c.splatLike(x, 0)));
}

FloatAttr real(Conversion& c, double value) { return c.builder.getF64FloatAttr(value); }

/// x where it is above `threshold`, 0 elsewhere.
Value above(Conversion& c, Value x, double threshold) {
  Value keep = c.compare(ComparePredicate::GT, x, c.splatLike(x, threshold));
  return c.select(keep, x, c.splatLike(x, 0));
}

Status leakyRelu(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  return c.give(c.create<LeakyReluOp>(x, real(c, c.node.real("alpha", 0.01))));
}

Status elu(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  return c.give(c.create<EluOp>(x, real(c, c.node.real("alpha", 1))));
}

/// gamma * (x > 0 ? x : alpha (e^x - 1)), Klambauer et al., arXiv:1706.02515.
Status selu(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  Value y = c.create<EluOp>(x, real(c, c.node.real("alpha", 1.6732632)));
  return c.give(c.scale(y, c.node.real("gamma", 1.050701)));
}

/// max(0, x) + min(0, alpha (e^(x/alpha) - 1)): alpha * elu(x / alpha) with slope 1 (Barron,
/// arXiv:1704.07483).
Status celu(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  double alpha = c.node.real("alpha", 1);
  if (alpha == 0)
    return c.error("alpha = 0");
  Value inner = alpha == 1 ? x : c.scale(x, 1 / alpha);
  Value y = c.create<EluOp>(inner, real(c, 1));
  return c.give(alpha == 1 ? y : c.scale(y, alpha));
}

Status gelu(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  std::string form = c.node.text("approximate", "none");
  if (form != "none" && form != "tanh")
    return c.error("approximate = '{}': none and tanh are known", printable(form));
  auto attribute =
      GeluFormAttr::get(c.builder.getContext(), form == "tanh" ? GeluForm::Tanh : GeluForm::Erf);
  return c.give(c.create<GeluOp>(x, attribute));
}

Status hardSigmoid(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  return c.give(c.create<HardSigmoidOp>(x, real(c, c.node.real("alpha", 0.2)),
                                        real(c, c.node.real("beta", 0.5))));
}

/// x * max(0, min(1, x / 6 + 1/2))
Status hardSwish(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  return c.give(c.mul(x, c.create<HardSigmoidOp>(x, real(c, 1.0 / 6), real(c, 0.5))));
}

/// x * sigmoid(alpha x)
Status swish(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  double alpha = c.node.real("alpha", 1);
  if (alpha == 1)
    return c.give(c.create<SiluOp>(x));
  return c.give(c.mul(x, c.create<SigmoidOp>(c.scale(x, alpha))));
}

/// x * tanh(softplus(x))
Status mish(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  return c.give(c.mul(x, c.create<TanhOp>(c.create<SoftplusOp>(x))));
}

/// x / (1 + |x|)
Status softsign(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  return c.give(c.div(x, c.shift(c.create<AbsOp>(x), 1)));
}

Status thresholdedRelu(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  return c.give(above(c, x, c.node.real("alpha", 1)));
}

/// x > 0 ? x : slope * x. The slope broadcasts to the operand.
Status prelu(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0)), slope = TITAN_TRY(c.floatOperand(1));
  if (broadcastShape(c.shapeOf(x), c.shapeOf(slope)) != c.shapeOf(x) ||
      tensorType(x).getElementType() != tensorType(slope).getElementType())
    return c.error("a slope of {} does not broadcast to {}", toString(c.shapeOf(slope)),
                   toString(c.shapeOf(x)));
  Value scaled = c.mul(x, c.broadcastTo(slope, c.shapeOf(x)));
  Value positive = c.compare(ComparePredicate::GT, x, c.splatLike(x, 0));
  return c.give(c.select(positive, x, scaled));
}

/// x < -lambd ? x + bias : x > lambd ? x - bias : 0
Status shrink(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  double bias = c.node.real("bias", 0), lambda = c.node.real("lambd", 0.5);
  Value low = c.compare(ComparePredicate::LT, x, c.splatLike(x, -lambda));
  Value high = c.compare(ComparePredicate::GT, x, c.splatLike(x, lambda));
  Value inner = c.select(high, c.shift(x, -bias), c.splatLike(x, 0));
  return c.give(c.select(low, c.shift(x, bias), inner));
}

} // namespace

ArrayRef<ConverterEntry> activationConverters() {
  static const ConverterEntry table[] = {
      {"Celu", 12, celu, ""},
      {"Elu", 6, elu, ""},
      {"Gelu", 20, gelu, ""},
      {"HardSigmoid", 6, hardSigmoid, ""},
      {"HardSwish", 14, hardSwish, ""},
      {"LeakyRelu", 6, leakyRelu, ""},
      {"Mish", 18, mish, ""},
      {"PRelu", 7, prelu, ""},
      {"Relu", 6, relu, ""},
      {"Selu", 6, selu, ""},
      {"Shrink", 9, shrink, ""},
      {"Sigmoid", 6, unary<SigmoidOp>, ""},
      {"Softplus", 1, unary<SoftplusOp>, ""},
      {"Softsign", 1, softsign, ""},
      {"Swish", 24, swish, ""},
      {"Tanh", 6, unary<TanhOp>, ""},
      {"ThresholdedRelu", 10, thresholdedRelu, ""},
  };
  return table;
}

} // namespace titan::frontend
