// Meaning of titan.convolution and its gradients: one walk over all products of an element of the
// operand with one of the kernel.
#include "compiler/Interpreter/Models.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::interpreter {

namespace {

/// The row-major number of the element that tap `tap` reads at `position`; none in the padding.
std::optional<int64_t> elementAt(const ConvolutionShape& shape, ArrayRef<int64_t> position,
                                 ArrayRef<int64_t> tap) {
  int64_t element = 0;
  for (size_t d = 0; d < shape.rank(); ++d) {
    const int64_t at = position[d] * shape.strides[d] + tap[d] * shape.dilations[d] - shape.low[d];
    if (at < 0 || at >= shape.operand[d])
      return std::nullopt;
    element = element * shape.operand[d] + at;
  }
  return element;
}

/// Calls `visit` with the places of the three elements of every product, padding left out, in the
/// order (n, position, tap, group, o, c).
void forEachProduct(
    const ConvolutionShape& shape,
    llvm::function_ref<void(int64_t operand, int64_t kernel, int64_t result)> visit) {
  const int64_t elements = ShapedType::getNumElements(shape.operand),
                taps = ShapedType::getNumElements(shape.taps),
                positions = ShapedType::getNumElements(shape.positions);
  const int64_t inputs = shape.inputs, outputs = shape.outputs, groups = shape.groups;
  const SmallVector<int64_t> strides = computeStrides(shape.positions),
                             tapStrides = computeStrides(shape.taps);
  for (int64_t n = 0; n < shape.batch; ++n)
    for (int64_t p = 0; p < positions; ++p)
      for (int64_t t = 0; t < taps; ++t)
        if (auto element = elementAt(shape, delinearize(p, strides), delinearize(t, tapStrides)))
          for (int64_t g = 0; g < groups; ++g)
            for (int64_t o = g * outputs; o < (g + 1) * outputs; ++o)
              for (int64_t c = 0; c < inputs; ++c)
                visit((n * elements + *element) * groups * inputs + g * inputs + c,
                      (o * taps + t) * inputs + c, (n * positions + p) * groups * outputs + o);
}

LogicalResult convolution(ConvolutionOp op, Frame& frame) {
  ArrayRef<double> x = frame.get(op.getOperand()).floats(), w = frame.get(op.getKernel()).floats();
  Tensor result(cast<ShapedType>(op.getType()));
  MutableArrayRef<double> y = result.mutableFloats();
  forEachProduct(op.getConvolutionShape(),
                 [&](int64_t i, int64_t k, int64_t r) { y[r] += x[i] * w[k]; });
  frame.set(op, std::move(result));
  return success();
}

LogicalResult inputGrad(ConvolutionInputGradOp op, Frame& frame) {
  ArrayRef<double> dy = frame.get(op.getDresult()).floats(), w = frame.get(op.getKernel()).floats();
  Tensor result(cast<ShapedType>(op.getType()));
  MutableArrayRef<double> dx = result.mutableFloats();
  forEachProduct(op.getConvolutionShape(),
                 [&](int64_t i, int64_t k, int64_t r) { dx[i] += dy[r] * w[k]; });
  frame.set(op, std::move(result));
  return success();
}

LogicalResult kernelGrad(ConvolutionKernelGradOp op, Frame& frame) {
  ArrayRef<double> x = frame.get(op.getOperand()).floats(),
                   dy = frame.get(op.getDresult()).floats();
  Tensor result(cast<ShapedType>(op.getType()));
  MutableArrayRef<double> dw = result.mutableFloats();
  forEachProduct(op.getConvolutionShape(),
                 [&](int64_t i, int64_t k, int64_t r) { dw[k] += x[i] * dy[r]; });
  if (op.getAcc()) {
    // "rounded once more": the sum is a value of the result's type before it is added.
    for (auto [sum, acc] : llvm::zip_equal(dw, frame.get(op.getAcc()).floats()))
      sum = frame.round(sum, result.element()) + acc;
  }
  frame.set(op, std::move(result));
  return success();
}

} // namespace

void attachConvolution(MLIRContext* context) {
  attach<ConvolutionOp, convolution>(context);
  attach<ConvolutionInputGradOp, inputGrad>(context);
  attach<ConvolutionKernelGradOp, kernelGrad>(context);
}

} // namespace titan::interpreter
