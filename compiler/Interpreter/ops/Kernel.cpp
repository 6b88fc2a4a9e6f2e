// Meaning of kernels on tensors; routines are in Routines.cpp. Values of a fused body are arrays
// over the whole iteration space.
#include "compiler/Interpreter/Models.h"
#include "compiler/Interpreter/Routines.h"
#include "compiler/Interpreter/Rows.h"
#include "runtime/program/Random.h"

#include "dialects/Kernel/Kernel.h"

#include <cmath>

using namespace mlir;
using namespace titan::kernel;

namespace titan::interpreter {

namespace {

/// `map` from the space to `tensor` as a walk. Maps are affine without mod and div, so that their
/// value at the origin and at the unit points says everything.
Walk walkOf(AffineMap map, const Tensor& tensor) {
  auto position = [&](ArrayRef<int64_t> point) {
    int64_t sum = 0;
    for (auto [index, stride] : llvm::zip_equal(map.compose(point), tensor.strides()))
      sum += index * stride;
    return sum;
  };
  SmallVector<int64_t> point(map.getNumDims(), 0);
  Walk walk{position(point), {}};
  for (int64_t& coordinate : point) {
    coordinate = 1;
    walk.strides.push_back(position(point) - walk.start);
    coordinate = 0;
  }
  return walk;
}

LogicalResult fused(FusedOp op, Frame& frame) {
  ArrayRef<int64_t> space = op.getSpace();
  Block& block = op.getBlock();
  for (auto [i, in] : llvm::enumerate(op.getIns())) {
    const Tensor& tensor = frame.get(in);
    Tensor values(space, tensor.element());
    copyElements(space, tensor, walkOf(op.getInMap(i), tensor), values, wholeWalk(values));
    frame.setExact(block.getArgument(i), std::move(values));
  }
  for (auto [i, scalar] : llvm::enumerate(op.getScalars())) {
    Tensor values(space, scalar.getType());
    llvm::fill(values.mutableIntegers(), frame.get(scalar).integer());
    frame.setExact(block.getArgument(op.getIns().size() + i), std::move(values));
  }
  if (failed(frame.run(block)))
    return failure();
  for (auto [i, value] : llvm::enumerate(block.getTerminator()->getOperands())) {
    Tensor result = frame.get(op.getOuts()[i]);
    const Tensor& values = frame.get(value);
    copyElements(space, values, wholeWalk(values), result, walkOf(op.getOutMap(i), result));
    frame.setExact(op.getResult(i), std::move(result));
  }
  return success();
}

ArrayRef<int64_t> spaceOf(Operation* op) { return cast<FusedOp>(op->getParentOp()).getSpace(); }

LogicalResult index(IndexOp op, Frame& frame) {
  Tensor values(spaceOf(op), op.getType());
  int64_t inner = values.strides()[op.getDim()], extent = values.extent(op.getDim());
  for (auto [i, value] : llvm::enumerate(values.mutableIntegers()))
    value = static_cast<int64_t>(i) / inner % extent;
  frame.setExact(op, std::move(values));
  return success();
}

LogicalResult reduce(titan::kernel::ReduceOp op, Frame& frame) {
  const Tensor& values = frame.get(op.getValue());
  Rows rows(values, op.getDims());
  Reduction kind = Reduction::Sum;
  if (op.getKind() != titan::kernel::ReduceKind::Add)
    kind = op.getKind() == titan::kernel::ReduceKind::Mul   ? Reduction::Product
           : op.getKind() == titan::kernel::ReduceKind::Max ? Reduction::Max
                                                            : Reduction::Min;
  SmallVector<int64_t> kept;
  for (int64_t d = 0; d < values.rank(); ++d)
    if (!llvm::is_contained(op.getDims(), d))
      kept.push_back(values.extent(d));
  Tensor reduced(kept, values.element());
  if (reduced.isFloat())
    reduceRows(rows, kind, reduced.mutableFloats());
  else
    reduceRows(rows, kind, reduced.mutableIntegers());
  // The value at every point of the space: the reduced dimensions repeat.
  Walk from;
  for (int64_t d = 0, next = 0; d < values.rank(); ++d)
    from.strides.push_back(llvm::is_contained(op.getDims(), d) ? 0 : reduced.strides()[next++]);
  Tensor result(values.shape(), values.element());
  copyElements(result.shape(), reduced, from, result, wholeWalk(result));
  frame.set(op, std::move(result));
  return success();
}

LogicalResult randomHalf(RandomHalfOp op, Frame& frame) {
  ArrayRef<int64_t> seeds = frame.get(op.getSeed()).integers(),
                    steps = frame.get(op.getStep()).integers(),
                    elements = frame.get(op.getElement()).integers();
  ArrayRef<int64_t> bases = op.getBase() ? frame.get(op.getBase()).integers() : elements;
  Tensor result(spaceOf(op), op.getType());
  for (auto [i, half] : llvm::enumerate(result.mutableIntegers())) {
    int64_t element = elements[i] + (op.getBase() ? bases[i] : 0);
    PhiloxBlock block = philox4x32_7(randomKey(seeds[i], op.getStream()), element / 8, steps[i]);
    uint32_t word = block[element % 8 / 2];
    half = element % 2 ? word >> 16 : word & 0xffff;
  }
  frame.setExact(op, std::move(result));
  return success();
}

LogicalResult empty(EmptyOp op, Frame& frame) {
  frame.set(op, Tensor::unspecified(cast<ShapedType>(op.getType())));
  return success();
}

LogicalResult constant(titan::kernel::ConstantOp op, Frame& frame) {
  FailureOr<Tensor> value = constantTensor(op, op.getValue());
  if (failed(value))
    return failure();
  frame.setExact(op, std::move(*value));
  return success();
}

LogicalResult castShape(CastShapeOp op, Frame& frame) {
  auto type = cast<ShapedType>(op.getType());
  frame.setExact(op, frame.get(op.getSource()).reshaped(type.getShape()));
  return success();
}

LogicalResult rows(RowsOp op, Frame& frame) {
  const Tensor& source = frame.get(op.getSource());
  auto type = cast<ShapedType>(op.getType());
  const int64_t first = frame.get(op.getFirst()).integer();
  if (first < 0 || first + type.getDimSize(0) > source.extent(0))
    return op.emitOpError("takes rows [")
           << first << ", " << first + type.getDimSize(0) << ") of " << source.extent(0);
  Walk walk = wholeWalk(source);
  walk.start = first * walk.strides.front();
  Tensor result(type);
  copyElements(type.getShape(), source, walk, result, wholeWalk(result));
  frame.setExact(op, std::move(result));
  return success();
}

/// On tensors only: buffers have no meaning here. Runs `function` or says so.
template <typename OpTy, auto function> void attachOnTensors(MLIRContext* context) {
  attach<OpTy, [](OpTy op, Frame& frame) -> LogicalResult {
    if (op->getNumResults() == 0 || isa<MemRefType>(op->getResult(0).getType()))
      return op.emitOpError("on buffers has no meaning in the interpreter");
    return function(op, frame);
  }>(context);
}

} // namespace

void attachKernel(MLIRContext* context) {
  attachOnTensors<FusedOp, fused>(context);
  attachOnTensors<CallOp, callRoutine>(context);
  attachOnTensors<CastShapeOp, castShape>(context);
  attachOnTensors<RowsOp, rows>(context);
  attachOnTensors<titan::kernel::ConstantOp, constant>(context);
  attach<EmptyOp, empty>(context);
  attach<IndexOp, index>(context);
  attach<titan::kernel::ReduceOp, reduce>(context);
  attach<RandomHalfOp, randomHalf>(context);
}

} // namespace titan::interpreter
