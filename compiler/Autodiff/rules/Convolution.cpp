// Derivatives of titan.convolution and its gradients. The three are the partial derivatives of one
// form that is linear in the operand, the kernel and the gradient of the result, so the adjoints of
// each are the other two.
#include "compiler/Autodiff/Rules.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::autodiff {

namespace {

using Builder = AdjointBuilder;

/// Builds the three ops with the windows of `op`, whose operands have one element type; results
/// are converted to it.
template <typename Op> class Form {
public:
  Form(Builder& b, Op op) : b(b), op(op), element(tensorType(op->getOperand(0)).getElementType()) {}

  /// The adjoint of the result, as an operand.
  Value adjoint() { return b.convert(b.result(), element); }
  Value result(Value operand, Value kernel) {
    return build<ConvolutionOp>(op.getConvolutionShape().positionDims(), operand, kernel);
  }
  Value operand(Value dresult, Value kernel) {
    return build<ConvolutionInputGradOp>(op.getConvolutionShape().operandDims(), dresult, kernel);
  }
  Value kernel(Value operand, Value dresult) {
    return build<ConvolutionKernelGradOp>(op.getConvolutionShape().kernelDims(), operand, dresult,
                                          Value());
  }

private:
  template <typename Other, typename... Operands>
  Value build(ArrayRef<int64_t> shape, Operands... operands) {
    auto type = RankedTensorType::get(shape, tensorType(op.getResult()).getElementType());
    return b.convert(b.create<Other>(type, operands..., op.getStrides(), op.getLow(), op.getHigh(),
                                     op.getDilations(), op.getGroups()),
                     element);
  }

  Builder& b;
  Op op;
  Type element;
};

void convolution(Builder& b, ConvolutionOp op) {
  Form form(b, op);
  if (b.needs(0))
    b.set(0, form.operand(form.adjoint(), op.getKernel()));
  if (b.needs(1))
    b.set(1, form.kernel(op.getOperand(), form.adjoint()));
}

void inputGrad(Builder& b, ConvolutionInputGradOp op) {
  Form form(b, op);
  if (b.needs(0))
    b.set(0, form.result(form.adjoint(), op.getKernel()));
  if (b.needs(1))
    b.set(1, form.kernel(form.adjoint(), op.getDresult()));
}

void kernelGrad(Builder& b, ConvolutionKernelGradOp op) {
  Form form(b, op);
  if (b.needs(0))
    b.set(0, form.operand(op.getDresult(), form.adjoint()));
  if (b.needs(1))
    b.set(1, form.result(op.getOperand(), form.adjoint()));
  if (op.getAcc() && b.needs(2))
    b.set(2, b.result());
}

} // namespace

void attachConvolutionRules(MLIRContext* context) {
  attachRule<ConvolutionOp, convolution>(context);
  attachRule<ConvolutionInputGradOp, inputGrad>(context);
  attachRule<ConvolutionKernelGradOp, kernelGrad>(context);
}

} // namespace titan::autodiff
