// Dropout: active where the export or the recipe says training.
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
  return c.give(c.create<DropoutOp>(x.getType(), x, Value(), Value(), Value(),
                                    c.builder.getF64FloatAttr(ratio),
                                    c.builder.getI64IntegerAttr(stream), WindowAttr()));
}

} // namespace

ArrayRef<ConverterEntry> dropoutConverters() {
  static const ConverterEntry table[] = {
      {"Dropout", 7, dropout, "without its mask output"},
  };
  return table;
}

} // namespace titan::frontend
