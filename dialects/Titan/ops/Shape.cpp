#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

static bool isIdentity(ArrayRef<int64_t> permutation) {
  for (auto [i, d] : llvm::enumerate(permutation))
    if (d != static_cast<int64_t>(i))
      return false;
  return true;
}

/// A splat constant keeps its value under any op that only moves elements.
static OpFoldResult foldSplat(Attribute operand, Type type) {
  if (auto splat = dyn_cast_if_present<SplatElementsAttr>(operand))
    return splat.resizeSplat(cast<ShapedType>(type));
  return {};
}

LogicalResult ReshapeOp::verify() {
  int64_t from = tensorType(getOperand()).getNumElements(),
          to = tensorType(getResult()).getNumElements();
  if (from != to)
    return emitOpError("(C1) reshapes ") << from << " elements to " << to;
  return success();
}

LogicalResult TransposeOp::verify() {
  RankedTensorType from = tensorType(getOperand()), to = tensorType(getResult());
  if (!isPermutation(getPermutation(), from.getRank()))
    return emitOpError("(C1) [") << getPermutation() << "] does not permute " << from.getRank()
                                 << " dimensions";
  SmallVector<int64_t> shape;
  for (int64_t d : getPermutation())
    shape.push_back(from.getDimSize(d));
  if (to != from.clone(shape))
    return emitOpError("(C2) the permuted type is ") << from.clone(shape) << ", not " << to;
  return success();
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType from = tensorType(getOperand()), to = tensorType(getResult());
  if (static_cast<int64_t>(getDims().size()) != from.getRank() ||
      !isIncreasingWithin(getDims(), to.getRank()))
    return emitOpError("(C1) dims [") << getDims() << "] do not map " << from << " into " << to;
  for (auto [i, d] : llvm::enumerate(getDims()))
    if (from.getDimSize(i) != to.getDimSize(d))
      return emitOpError("(C2) operand dimension ")
             << i << " has extent " << from.getDimSize(i) << ", result dimension " << d << " has "
             << to.getDimSize(d);
  return success();
}

LogicalResult ConcatOp::verify() {
  if (getInputs().empty())
    return emitOpError("(C1) has no operands");
  RankedTensorType first = tensorType(getInputs().front());
  int64_t dim = getDim(), extent = 0;
  if (dim < 0 || dim >= first.getRank())
    return emitOpError("(C2) dim ") << dim << " is outside the rank " << first.getRank();
  SmallVector<int64_t> shape(first.getShape());
  for (Value input : getInputs()) {
    RankedTensorType type = tensorType(input);
    if (type.getRank() != first.getRank() || type.getElementType() != first.getElementType())
      return emitOpError("(C1) joins ") << first << " and " << type;
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (d != dim && type.getDimSize(d) != first.getDimSize(d))
        return emitOpError("(C1) joins ") << first << " and " << type << " along " << dim;
    extent += type.getDimSize(dim);
  }
  shape[dim] = extent;
  if (tensorType(getResult()) != first.clone(shape))
    return emitOpError("(C2) the joined type is ") << first.clone(shape);
  return success();
}

LogicalResult SliceOp::verify() {
  RankedTensorType from = tensorType(getOperand()), to = tensorType(getResult());
  int64_t rank = from.getRank();
  if (to.getRank() != rank || static_cast<int64_t>(getOffsets().size()) != rank ||
      static_cast<int64_t>(getStrides().size()) != rank ||
      llvm::any_of(getStrides(), [](int64_t s) { return s <= 0; }))
    return emitOpError("(C1) needs one offset and one positive stride for each of ")
           << rank << " dimensions";
  for (int64_t d = 0; d < rank; ++d) {
    int64_t last = getOffsets()[d] + (to.getDimSize(d) - 1) * getStrides()[d];
    if (getOffsets()[d] < 0 || (to.getDimSize(d) > 0 && last >= from.getDimSize(d)))
      return emitOpError("(C2) dimension ")
             << d << " reads element " << last << " of " << from.getDimSize(d);
  }
  return success();
}

LogicalResult ReverseOp::verify() {
  if (!isIncreasingWithin(getDims(), tensorType(getOperand()).getRank()))
    return emitOpError("(C1) dims [")
           << getDims() << "] are no increasing dimensions of " << tensorType(getOperand());
  return success();
}

LogicalResult PadOp::verify() {
  RankedTensorType from = tensorType(getOperand()), to = tensorType(getResult());
  int64_t rank = from.getRank();
  auto negative = [](int64_t v) { return v < 0; };
  if (to.getRank() != rank || static_cast<int64_t>(getLow().size()) != rank ||
      static_cast<int64_t>(getInterior().size()) != rank || llvm::any_of(getLow(), negative) ||
      llvm::any_of(getInterior(), negative))
    return emitOpError("(C1) needs one non-negative low and interior for each of ")
           << rank << " dimensions";
  for (int64_t d = 0; d < rank; ++d) {
    int64_t last = getLow()[d] + (from.getDimSize(d) - 1) * (1 + getInterior()[d]);
    if (from.getDimSize(d) > 0 && last >= to.getDimSize(d))
      return emitOpError("(C2) dimension ")
             << d << " writes element " << last << " of " << to.getDimSize(d);
  }
  return success();
}

LogicalResult IotaOp::verify() {
  return verifyDim(*this, getDim(), tensorType(getResult()).getRank());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  if (auto inner = getOperand().getDefiningOp<ReshapeOp>()) {
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  return foldSplat(adaptor.getOperand(), getType());
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (isIdentity(getPermutation()))
    return getOperand();
  if (auto inner = getOperand().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t d : getPermutation())
      composed.push_back(inner.getPermutation()[d]);
    getOperandMutable().assign(inner.getOperand());
    setPermutation(composed);
    return getResult();
  }
  return foldSplat(adaptor.getOperand(), getType());
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  return foldSplat(adaptor.getOperand(), getType());
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  return foldSplat(adaptor.getOperand(), getType());
}

OpFoldResult ReverseOp::fold(FoldAdaptor adaptor) {
  RankedTensorType type = tensorType(getOperand());
  if (llvm::all_of(getDims(), [&](int64_t d) { return type.getDimSize(d) == 1; }))
    return getOperand();
  auto inner = getOperand().getDefiningOp<ReverseOp>();
  if (inner && inner.getDims() == getDims())
    return inner.getOperand();
  return foldSplat(adaptor.getOperand(), getType());
}

ShardingRule IotaOp::getShardingRule() { return elementwiseRule(*this, {(int64_t)getDim()}); }

ShardingRule ReshapeOp::getShardingRule() {
  // Walks both shapes from the outermost dimension and groups those whose products agree: within a
  // group of one to one the factor is shared; otherwise the outermost factor of the group is split
  // as far as both sides allow.
  ShardingRule rule = emptyRule(*this);
  ArrayRef<int64_t> from = tensorType(getOperand()).getShape(),
                    to = tensorType(getResult()).getShape();
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    size_t i0 = i, j0 = j;
    int64_t a = i < from.size() ? from[i++] : 1, b = j < to.size() ? to[j++] : 1;
    while (a != b) {
      if (a < b && i < from.size())
        a *= from[i++];
      else if (b < a && j < to.size())
        b *= to[j++];
      else
        break;
    }
    if (i == i0 || j == j0)
      continue; // trailing extents of 1 on one side
    // Outer factors: from the left, while one side's extent divides the other's.
    int64_t restA = from[i0], restB = to[j0];
    size_t p = i0, q = j0;
    while (p < i && q < j) {
      int64_t common = std::min(restA, restB);
      if (common == 0 || restA % common != 0 || restB % common != 0) {
        // Extents do not nest: the rest of the group stays whole.
        int64_t factor = rule.addFactor(0, FactorKind::Whole);
        for (; p < i; ++p)
          rule.operands[0][p].push_back(factor);
        for (; q < j; ++q)
          rule.results[0][q].push_back(factor);
        break;
      }
      int64_t factor = rule.addFactor(common, FactorKind::Parallel);
      rule.operands[0][p].push_back(factor);
      rule.results[0][q].push_back(factor);
      restA /= common;
      restB /= common;
      if (restA == 1 && ++p < i)
        restA = from[p];
      if (restB == 1 && ++q < j)
        restB = to[q];
    }
  }
  return rule;
}

ShardingRule TransposeOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  for (auto [i, d] : llvm::enumerate(getPermutation())) {
    int64_t factor = rule.addFactor(tensorType(getResult()).getDimSize(i), FactorKind::Parallel);
    rule.operands[0][d] = rule.results[0][i] = {factor};
  }
  return rule;
}

ShardingRule BroadcastOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  for (auto [d, extent] : llvm::enumerate(tensorType(getResult()).getShape()))
    rule.results[0][d] = {rule.addFactor(extent, FactorKind::Parallel)};
  for (auto [i, d] : llvm::enumerate(getDims()))
    rule.operands[0][i] = rule.results[0][d];
  return rule;
}

ShardingRule ConcatOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  ArrayRef<int64_t> shape = tensorType(getResult()).getShape();
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    bool joined = d == static_cast<int64_t>(getDim());
    if (joined) {
      rule.results[0][d] = {rule.addFactor(shape[d], FactorKind::Whole)};
      for (auto [i, input] : llvm::enumerate(getInputs()))
        rule.operands[i][d] = {rule.addFactor(tensorType(input).getDimSize(d), FactorKind::Whole)};
      continue;
    }
    int64_t factor = rule.addFactor(shape[d], FactorKind::Parallel);
    rule.results[0][d] = {factor};
    for (ShardingRule::Dims& dims : rule.operands)
      dims[d] = {factor};
  }
  return rule;
}

/// Dimensions that pass unchanged are parallel; the others stay whole on each side.
static ShardingRule movedRule(Operation* op, function_ref<bool(int64_t)> unchanged) {
  ShardingRule rule = emptyRule(op);
  ArrayRef<int64_t> from = tensorType(op->getOperand(0)).getShape(),
                    to = tensorType(op->getResult(0)).getShape();
  for (int64_t d = 0; d < static_cast<int64_t>(from.size()); ++d) {
    if (unchanged(d)) {
      int64_t factor = rule.addFactor(from[d], FactorKind::Parallel);
      rule.operands[0][d] = rule.results[0][d] = {factor};
    } else {
      rule.operands[0][d] = {rule.addFactor(from[d], FactorKind::Whole)};
      rule.results[0][d] = {rule.addFactor(to[d], FactorKind::Whole)};
    }
  }
  return rule;
}

ShardingRule SliceOp::getShardingRule() {
  return movedRule(*this, [&](int64_t d) {
    return tensorType(getOperand()).getDimSize(d) == tensorType(getResult()).getDimSize(d);
  });
}

ShardingRule ReverseOp::getShardingRule() { return elementwiseRule(*this, getDims()); }

ShardingRule PadOp::getShardingRule() {
  return movedRule(*this, [&](int64_t d) {
    return tensorType(getOperand()).getDimSize(d) == tensorType(getResult()).getDimSize(d);
  });
}

} // namespace titan::ir
