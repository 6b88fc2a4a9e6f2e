// Folders of the titan dialect. Only rewrites that keep every bit: x * 1 folds, x + 0 does not (-0
// + 0 is +0).
#include "dialects/Titan/ResultTypes.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace titan::ir {

namespace {

/// Is `attribute` a splat of `value`?
bool isSplat(Attribute attribute, double value) {
  auto splat = dyn_cast_if_present<SplatElementsAttr>(attribute);
  if (!splat)
    return false;
  Type element = splat.getElementType();
  if (isa<FloatType>(element))
    return splat.getSplatValue<APFloat>().convertToDouble() == value;
  if (element.isInteger(1))
    return splat.getSplatValue<bool>() == (value != 0);
  return splat.getSplatValue<APInt>().getSExtValue() == static_cast<int64_t>(value);
}

bool isIdentity(ArrayRef<int64_t> permutation) {
  for (auto [i, d] : llvm::enumerate(permutation))
    if (d != static_cast<int64_t>(i))
      return false;
  return true;
}

/// A splat constant keeps its value under any op that only moves elements.
OpFoldResult foldSplat(Attribute operand, Type type) {
  if (auto splat = dyn_cast_if_present<SplatElementsAttr>(operand))
    return splat.resizeSplat(cast<ShapedType>(type));
  return {};
}

} // namespace

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

OpFoldResult NegOp::fold(FoldAdaptor) {
  if (auto inner = getOperand().getDefiningOp<NegOp>())
    return inner.getOperand();
  return {};
}

OpFoldResult NotOp::fold(FoldAdaptor) {
  if (auto inner = getOperand().getDefiningOp<NotOp>())
    return inner.getOperand();
  return {};
}

OpFoldResult ReluOp::fold(FoldAdaptor) {
  if (getOperand().getDefiningOp<ReluOp>())
    return getOperand();
  return {};
}

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  if (!isa<FloatType>(tensorType(getResult()).getElementType()) && isSplat(adaptor.getRhs(), 0))
    return getLhs();
  return {};
}

OpFoldResult SubOp::fold(FoldAdaptor adaptor) {
  // x - (+0) is x for every x, -0 included.
  if (isSplat(adaptor.getRhs(), 0)) {
    auto splat = cast<SplatElementsAttr>(adaptor.getRhs());
    if (!isa<FloatType>(splat.getElementType()) || !splat.getSplatValue<APFloat>().isNegative())
      return getLhs();
  }
  return {};
}

OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (isSplat(adaptor.getRhs(), 1))
    return getLhs();
  if (isSplat(adaptor.getLhs(), 1))
    return getRhs();
  return {};
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  if (isSplat(adaptor.getRhs(), 1))
    return getLhs();
  return {};
}

OpFoldResult AndOp::fold(FoldAdaptor adaptor) {
  if (isSplat(adaptor.getRhs(), 1) || getLhs() == getRhs())
    return getLhs();
  if (isSplat(adaptor.getLhs(), 1))
    return getRhs();
  return {};
}

OpFoldResult OrOp::fold(FoldAdaptor adaptor) {
  if (isSplat(adaptor.getRhs(), 0) || getLhs() == getRhs())
    return getLhs();
  if (isSplat(adaptor.getLhs(), 0))
    return getRhs();
  return {};
}

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getOnTrue() == getOnFalse() || isSplat(adaptor.getCondition(), 1))
    return getOnTrue();
  if (isSplat(adaptor.getCondition(), 0))
    return getOnFalse();
  return {};
}

OpFoldResult ConvertOp::fold(FoldAdaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  return {};
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

OpFoldResult ReduceOp::fold(FoldAdaptor) {
  if (getDims().empty())
    return getOperand();
  return {};
}

} // namespace titan::ir
