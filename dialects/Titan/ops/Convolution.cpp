#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

namespace {

SmallVector<int64_t> joined(int64_t first, ArrayRef<int64_t> middle, int64_t last) {
  SmallVector<int64_t> dims = {first};
  llvm::append_range(dims, middle);
  dims.push_back(last);
  return dims;
}

ArrayRef<int64_t> shapeOf(Value value) { return tensorType(value).getShape(); }

ArrayRef<int64_t> spaceOf(ArrayRef<int64_t> shape) { return shape.drop_front().drop_back(); }

/// `operand` [N, space..., g C], `kernel` [g O, taps..., C], `positions` [N, positions..., g O].
template <typename Op>
ConvolutionShape shapeFrom(Op op, ArrayRef<int64_t> operand, ArrayRef<int64_t> kernel,
                           ArrayRef<int64_t> positions) {
  const auto groups = static_cast<int64_t>(op.getGroups());
  return {.batch = operand.front(),
          .groups = groups,
          .inputs = operand.back() / groups,
          .outputs = positions.back() / groups,
          .operand = SmallVector<int64_t>(spaceOf(operand)),
          .taps = SmallVector<int64_t>(spaceOf(kernel)),
          .positions = SmallVector<int64_t>(spaceOf(positions)),
          .strides = op.getStrides(),
          .low = op.getLow(),
          .high = op.getHigh(),
          .dilations = op.getDilations()};
}

/// What the three verifiers share; the arguments are the three shapes of `op`.
template <typename Op>
LogicalResult verifyShape(Op op, ArrayRef<int64_t> operand, ArrayRef<int64_t> kernel,
                          ArrayRef<int64_t> positions) {
  const size_t rank = operand.size();
  if (rank < 3 || kernel.size() != rank || positions.size() != rank)
    return op.emitOpError("(C1) operand, kernel and result have one rank of 3 or more, found ")
           << rank << ", " << kernel.size() << " and " << positions.size();
  for (ArrayRef<int64_t> list : {op.getStrides(), op.getLow(), op.getHigh(), op.getDilations()})
    if (list.size() != rank - 2)
      return op.emitOpError("(C1) has ")
             << rank - 2 << " dimensions of space, and a list of " << list.size();
  if (llvm::any_of(llvm::concat<const int64_t>(op.getStrides(), op.getDilations()),
                   [](int64_t x) { return x < 1; }) ||
      llvm::any_of(llvm::concat<const int64_t>(op.getLow(), op.getHigh()),
                   [](int64_t x) { return x < 0; }))
    return op.emitOpError("(C1) strides [")
           << op.getStrides() << "] and dilations [" << op.getDilations()
           << "] are positive, padding [" << op.getLow() << "] and [" << op.getHigh()
           << "] is not negative";
  const auto groups = static_cast<int64_t>(op.getGroups());
  if (groups < 1 || operand.back() % groups != 0 || positions.back() % groups != 0 ||
      kernel.back() * groups != operand.back() || kernel.front() != positions.back())
    return op.emitOpError("(C2) ")
           << groups << " groups do not divide " << operand.back() << " channels into a kernel of "
           << kernel.back() << ", and " << positions.back() << " into one of " << kernel.front();
  Type element = tensorType(op->getOperand(0)).getElementType();
  if (tensorType(op->getOperand(1)).getElementType() != element ||
      op.getType().getElementType() != accumulationType(element))
    return op.emitOpError("(C3) ")
           << element << " and " << tensorType(op->getOperand(1)).getElementType()
           << " do not give " << op.getType().getElementType();
  if (operand.front() != positions.front())
    return op.emitOpError("(C4) batches of ")
           << operand.front() << " and " << positions.front() << " differ";
  ConvolutionShape shape = shapeFrom(op, operand, kernel, positions);
  for (size_t d = 0; d < shape.rank(); ++d) {
    if (shape.fitting(d) < 1)
      return op.emitOpError("(C4) a window of ")
             << shape.window(d) << " is larger than the padded extent " << shape.padded(d)
             << " of dimension " << d << " of space";
    if (shape.fitting(d) != shape.positions[d])
      return op.emitOpError("(C4) dimension ") << d << " of space has " << shape.fitting(d)
                                               << " positions, not " << shape.positions[d];
  }
  return success();
}

} // namespace

int64_t ConvolutionShape::flops() const {
  return 2 * ShapedType::getNumElements(positionDims()) * ShapedType::getNumElements(taps) * inputs;
}
SmallVector<int64_t> ConvolutionShape::operandDims() const {
  return joined(batch, operand, groups * inputs);
}
SmallVector<int64_t> ConvolutionShape::kernelDims() const {
  return joined(groups * outputs, taps, inputs);
}
SmallVector<int64_t> ConvolutionShape::positionDims() const {
  return joined(batch, positions, groups * outputs);
}

ConvolutionShape ConvolutionOp::getConvolutionShape() {
  return shapeFrom(*this, shapeOf(getOperand()), shapeOf(getKernel()), getType().getShape());
}
ConvolutionShape ConvolutionInputGradOp::getConvolutionShape() {
  return shapeFrom(*this, getType().getShape(), shapeOf(getKernel()), shapeOf(getDresult()));
}
ConvolutionShape ConvolutionKernelGradOp::getConvolutionShape() {
  return shapeFrom(*this, shapeOf(getOperand()), getType().getShape(), shapeOf(getDresult()));
}

LogicalResult ConvolutionOp::verify() {
  return verifyShape(*this, shapeOf(getOperand()), shapeOf(getKernel()), getType().getShape());
}
LogicalResult ConvolutionInputGradOp::verify() {
  return verifyShape(*this, getType().getShape(), shapeOf(getKernel()), shapeOf(getDresult()));
}
LogicalResult ConvolutionKernelGradOp::verify() {
  if (getAcc() && getAcc().getType() != getType())
    return emitOpError("(C4) acc has the result's type ") << getType();
  return verifyShape(*this, shapeOf(getOperand()), getType().getShape(), shapeOf(getDresult()));
}

namespace {

using Dims = ShardingRule::Dims;

/// The three tensors of an op, as it has them among its operands and results.
struct OfConvolution {
  Dims &operand, &kernel, &positions;
};

struct Kinds {
  FactorKind batch, inputs, outputs;
};

/// Batch, channels of both sides, and each dimension of space, which is whole: a window reads its
/// neighbours. Channels of several groups are whole too, because a piece would have other groups.
void addFactors(ShardingRule& rule, const ConvolutionShape& shape, Kinds kinds, OfConvolution of) {
  const bool isDense = shape.groups == 1;
  const auto channels = [&](int64_t count, FactorKind kind) {
    return rule.addFactor(count, isDense ? kind : FactorKind::Whole);
  };
  const int64_t batch = rule.addFactor(shape.batch, kinds.batch),
                inputs = channels(shape.groups * shape.inputs, kinds.inputs),
                outputs = channels(shape.groups * shape.outputs, kinds.outputs),
                kernelInputs = isDense ? inputs : rule.addFactor(shape.inputs, FactorKind::Whole);
  const auto set = [&](Dims& dims, int64_t first, ArrayRef<int64_t> space, int64_t last) {
    dims.front() = {first};
    for (auto [d, extent] : llvm::enumerate(space))
      dims[d + 1] = {rule.addFactor(extent, FactorKind::Whole)};
    dims.back() = {last};
  };
  set(of.operand, batch, shape.operand, inputs);
  set(of.kernel, outputs, shape.taps, kernelInputs);
  set(of.positions, batch, shape.positions, outputs);
}

} // namespace

ShardingRule ConvolutionOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  addFactors(rule, getConvolutionShape(),
             {FactorKind::Parallel, FactorKind::Reduction, FactorKind::Parallel},
             {rule.operands[0], rule.operands[1], rule.results[0]});
  return rule;
}

ShardingRule ConvolutionInputGradOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  addFactors(rule, getConvolutionShape(),
             {FactorKind::Parallel, FactorKind::Parallel, FactorKind::Reduction},
             {rule.results[0], rule.operands[1], rule.operands[0]});
  return rule;
}

ShardingRule ConvolutionKernelGradOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  // With an accumulator the pieces' sum would count it once a piece.
  addFactors(rule, getConvolutionShape(),
             {getAcc() ? FactorKind::Whole : FactorKind::Reduction, FactorKind::Parallel,
              FactorKind::Parallel},
             {rule.operands[0], rule.results[0], rule.operands[1]});
  if (getAcc())
    rule.operands[2] = rule.results[0];
  return rule;
}

} // namespace titan::ir
