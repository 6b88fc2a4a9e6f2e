// Meaning of the ops that move elements, of constants, and of those that only hold values apart.
#include "compiler/Interpreter/Models.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::interpreter {

FailureOr<Tensor> constantTensor(Operation* op, ElementsAttr value) {
  auto elements = dyn_cast<DenseElementsAttr>(value);
  if (!elements)
    return op->emitOpError("is not dense");
  Tensor result(elements.getType());
  bool isSigned = !result.element().isUnsignedInteger() && !result.element().isInteger(1);
  auto integer = [&](const APInt& value) {
    return isSigned ? value.getSExtValue() : static_cast<int64_t>(value.getZExtValue());
  };
  if (elements.isSplat()) {
    if (result.isFloat())
      llvm::fill(result.mutableFloats(), elements.getSplatValue<APFloat>().convertToDouble());
    else
      llvm::fill(result.mutableIntegers(), integer(elements.getSplatValue<APInt>()));
  } else if (result.isFloat()) {
    for (auto [x, value] : llvm::zip(result.mutableFloats(), elements.getValues<APFloat>()))
      x = value.convertToDouble();
  } else {
    for (auto [x, value] : llvm::zip(result.mutableIntegers(), elements.getValues<APInt>()))
      x = integer(value);
  }
  return result;
}

namespace {

ShapedType resultType(Operation* op) { return cast<ShapedType>(op->getResult(0).getType()); }

LogicalResult constant(ConstantOp op, Frame& frame) {
  FailureOr<Tensor> value = constantTensor(op, op.getValue());
  if (failed(value))
    return failure();
  frame.setExact(op, std::move(*value));
  return success();
}

LogicalResult barrier(BarrierOp op, Frame& frame) {
  for (auto [input, result] : llvm::zip_equal(op.getInputs(), op.getResults()))
    frame.setExact(result, frame.get(input));
  return success();
}

LogicalResult detach(DetachOp op, Frame& frame) {
  frame.setExact(op, frame.get(op.getOperand()));
  return success();
}

LogicalResult reshape(ReshapeOp op, Frame& frame) {
  frame.setExact(op, frame.get(op.getOperand()).reshaped(resultType(op).getShape()));
  return success();
}

LogicalResult transpose(TransposeOp op, Frame& frame) {
  const Tensor& operand = frame.get(op.getOperand());
  Tensor result(resultType(op));
  Walk from;
  for (int64_t d : op.getPermutation())
    from.strides.push_back(operand.strides()[d]);
  copyElements(result.shape(), operand, from, result, wholeWalk(result));
  frame.setExact(op, std::move(result));
  return success();
}

LogicalResult broadcast(BroadcastOp op, Frame& frame) {
  const Tensor& operand = frame.get(op.getOperand());
  Tensor result(resultType(op));
  Walk from{0, SmallVector<int64_t>(result.rank(), 0)};
  for (auto [i, d] : llvm::enumerate(op.getDims()))
    from.strides[d] = operand.strides()[i];
  copyElements(result.shape(), operand, from, result, wholeWalk(result));
  frame.setExact(op, std::move(result));
  return success();
}

LogicalResult concat(ConcatOp op, Frame& frame) {
  Tensor result(resultType(op));
  Walk to = wholeWalk(result);
  for (Value input : op.getInputs()) {
    const Tensor& part = frame.get(input);
    copyElements(part.shape(), part, wholeWalk(part), result, to);
    to.start += part.extent(op.getDim()) * to.strides[op.getDim()];
  }
  frame.setExact(op, std::move(result));
  return success();
}

/// Every offsets[d] + i * steps[d] of a tensor.
Walk stridedWalk(const Tensor& tensor, ArrayRef<int64_t> offsets, ArrayRef<int64_t> steps) {
  Walk walk = wholeWalk(tensor);
  for (auto [stride, offset, step] : llvm::zip_equal(walk.strides, offsets, steps)) {
    walk.start += offset * stride;
    stride *= step;
  }
  return walk;
}

LogicalResult slice(SliceOp op, Frame& frame) {
  const Tensor& operand = frame.get(op.getOperand());
  Tensor result(resultType(op));
  copyElements(result.shape(), operand, stridedWalk(operand, op.getOffsets(), op.getStrides()),
               result, wholeWalk(result));
  frame.setExact(op, std::move(result));
  return success();
}

LogicalResult reverse(ReverseOp op, Frame& frame) {
  const Tensor& operand = frame.get(op.getOperand());
  Tensor result(resultType(op));
  Walk from = wholeWalk(operand);
  for (int64_t d : op.getDims()) {
    from.start += (operand.extent(d) - 1) * from.strides[d];
    from.strides[d] = -from.strides[d];
  }
  copyElements(result.shape(), operand, from, result, wholeWalk(result));
  frame.setExact(op, std::move(result));
  return success();
}

LogicalResult pad(PadOp op, Frame& frame) {
  const Tensor& operand = frame.get(op.getOperand());
  Tensor result = Tensor::splat(resultType(op), op.getValue().convertToDouble());
  SmallVector<int64_t> steps;
  for (int64_t interior : op.getInterior())
    steps.push_back(1 + interior);
  copyElements(operand.shape(), operand, wholeWalk(operand), result,
               stridedWalk(result, op.getLow(), steps));
  frame.set(op, std::move(result));
  return success();
}

LogicalResult iota(IotaOp op, Frame& frame) {
  Tensor result(resultType(op));
  int64_t inner = result.strides()[op.getDim()], extent = result.extent(op.getDim());
  auto fill = [&](auto values) {
    for (auto [i, x] : llvm::enumerate(values))
      x = static_cast<int64_t>(i) / inner % extent;
  };
  if (result.isFloat())
    fill(result.mutableFloats());
  else
    fill(result.mutableIntegers());
  frame.set(op, std::move(result));
  return success();
}

} // namespace

void attachShape(MLIRContext* context) {
  attach<ConstantOp, constant>(context);
  attach<BarrierOp, barrier>(context);
  attach<DetachOp, detach>(context);
  attach<ReshapeOp, reshape>(context);
  attach<TransposeOp, transpose>(context);
  attach<BroadcastOp, broadcast>(context);
  attach<ConcatOp, concat>(context);
  attach<SliceOp, slice>(context);
  attach<ReverseOp, reverse>(context);
  attach<PadOp, pad>(context);
  attach<IotaOp, iota>(context);
}

} // namespace titan::interpreter
