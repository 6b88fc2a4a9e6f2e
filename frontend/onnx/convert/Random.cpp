// Dropout, active where the export or the recipe says training, and sources of random numbers.
#include "frontend/onnx/convert/Conversion.h"

#include "runtime/program/Random.h"

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

Status dropout(Conversion& c) {
  Value x = TITAN_TRY(c.floatOperand(0));
  if (c.wants(1))
    return c.error("the mask of Dropout is read by the model, which is not supported");
  double ratio = c.node.opset < 12 ? c.node.real("ratio", 0.5) : 0.5;
  if (c.has(1))
    ratio = TITAN_TRY(c.scalar(1, "ratio"));
  bool training = c.trainingMode;
  // Up to opset 11 the node does not say; an export for inference has no dropout at all.
  if (c.has(2))
    training |= TITAN_TRY(c.scalar(2, "training_mode")) != 0;
  if (!training || ratio == 0)
    return c.give(x);
  if (!(ratio > 0 && ratio < 1))
    return c.error("ratio = {} is outside of [0, 1)", ratio);
  auto stream = static_cast<int64_t>(c.randomStream());
  return c.give(c.create<DropoutOp>(
      x.getType(), x, Value(), Value(), Value(), c.builder.getF64FloatAttr(ratio),
      c.builder.getI64IntegerAttr(stream), DenseI64ArrayAttr(), WindowAttr()));
}

/// Numbers of `element` in `shape`: standard ones. The node's `seed` is not read: the run has one.
Value draw(Conversion& c, RandomKind kind, const Shape& shape, Type element) {
  // The numbers of each microbatch are stacked: they need a dimension.
  const Shape drawn = shape.empty() ? Shape{1} : shape;
  Value numbers = c.create<RandomOp>(RankedTensorType::get(drawn, element), Value(), Value(),
                                     Value(), kind, c.randomStream(), WindowAttr());
  return c.reshaped(numbers, shape);
}

/// The element type that `dtype` names, else `otherwise`. Error: it is none of floats.
Result<Type> drawnType(Conversion& c, std::optional<DType> otherwise) {
  std::optional<DType> dtype = c.namedType("dtype", otherwise);
  Type element = dtype ? elementTypeOf(c.builder.getContext(), *dtype) : Type();
  if (!element || !isa<FloatType>(element))
    return c.error("draws numbers that are no floats");
  return element;
}

/// Shape and element type of operand 0, of which nothing else is read.
Result<RankedTensorType> likeOperand(Conversion& c) {
  if (const HostTensor* host = c.constant(0))
    return RankedTensorType::get(host->shape, elementTypeOf(c.builder.getContext(), host->dtype));
  return tensorType(TITAN_TRY(c.operand(0)));
}

/// `numbers` times `factor` plus `term`.
Status giveScaled(Conversion& c, Value numbers, double factor, double term) {
  if (factor != 1)
    numbers = c.scale(numbers, factor);
  return c.give(term == 0 ? numbers : c.shift(numbers, term));
}

Status giveNumbers(Conversion& c, RandomKind kind, const Shape& shape, Type element) {
  Value numbers = draw(c, kind, shape, element);
  if (kind == RandomKind::Normal)
    return giveScaled(c, numbers, c.node.real("scale", 1), c.node.real("mean", 0));
  const double low = c.node.real("low", 0), high = c.node.real("high", 1);
  return giveScaled(c, numbers, high - low, low);
}

template <RandomKind kind> Status random(Conversion& c) {
  const Shape shape = c.node.integers("shape").value_or(Shape{0});
  for (int64_t extent : shape)
    if (extent < 1)
      return c.error("draws numbers of shape [{}]", fmt::join(shape, ", "));
  return giveNumbers(c, kind, shape, TITAN_TRY(drawnType(c, DType::F32)));
}

template <RandomKind kind> Status randomLike(Conversion& c) {
  RankedTensorType like = TITAN_TRY(likeOperand(c));
  Type element = TITAN_TRY(drawnType(c, dtypeOf(like.getElementType())));
  return giveNumbers(c, kind, Shape(like.getShape()), element);
}

/// 1 with the probability that operand 0 says.
Status bernoulli(Conversion& c) {
  Value p = TITAN_TRY(c.floatOperand(0));
  std::optional<DType> dtype = c.namedType("dtype", dtypeOf(tensorType(p).getElementType()));
  if (!dtype)
    return c.error("element type {} is not supported", onnxTypeName(c.node.integer("dtype", 0)));
  Value numbers = draw(c, RandomKind::Uniform, c.shapeOf(p), tensorType(p).getElementType());
  return c.give(c.convert(c.compare(ComparePredicate::LT, numbers, p),
                          elementTypeOf(c.builder.getContext(), *dtype)));
}

} // namespace

ArrayRef<ConverterEntry> randomConverters() {
  static const ConverterEntry table[] = {
      {"Bernoulli", 15, bernoulli, "by the run's seed"},
      {"Dropout", 7, dropout, "without its mask output"},
      {"RandomNormal", 1, random<RandomKind::Normal>, "by the run's seed"},
      {"RandomNormalLike", 1, randomLike<RandomKind::Normal>, "by the run's seed"},
      {"RandomUniform", 1, random<RandomKind::Uniform>, "by the run's seed"},
      {"RandomUniformLike", 1, randomLike<RandomKind::Uniform>, "by the run's seed"},
  };
  return table;
}

} // namespace titan::frontend
