#include "frontend/raise/Layout.h"

using namespace mlir;

namespace titan::frontend {

std::optional<DimGroups> matchLeadingMerge(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  if (to.empty() || from.size() <= to.size() || from.back() != to.back())
    return std::nullopt;
  DimGroups groups;
  size_t next = 0, lead = from.size() - 1;
  for (int64_t extent : to.drop_back()) {
    SmallVector<int64_t, 2> group;
    int64_t product = 1;
    while (next < lead && (group.empty() || product != extent)) {
      product *= from[next];
      group.push_back(static_cast<int64_t>(next++));
    }
    if (product != extent || group.empty())
      return std::nullopt;
    groups.push_back(group);
  }
  // What is left has extent 1.
  for (; next < lead; ++next) {
    if (from[next] != 1 || groups.empty())
      return std::nullopt;
    groups.back().push_back(static_cast<int64_t>(next));
  }
  groups.push_back({static_cast<int64_t>(lead)});
  return groups;
}

std::optional<DimGroups> matchMerge(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  DimGroups groups;
  size_t next = 0;
  for (int64_t extent : to) {
    SmallVector<int64_t, 2> group;
    for (int64_t product = 1; product != extent; ++next) {
      if (next == from.size())
        return std::nullopt;
      product *= from[next];
      if (from[next] != 1)
        group.push_back(static_cast<int64_t>(next));
    }
    groups.push_back(group);
  }
  if (!llvm::all_of(from.drop_front(next), [](int64_t rest) { return rest == 1; }))
    return std::nullopt;
  return groups;
}

bool isElementwise(Operation* op) {
  return isa<ir::TitanDialect>(op->getDialect()) &&
         op->hasTrait<OpTrait::SameOperandsAndResultShape>() && op->getNumOperands() > 0;
}

Value cloneElementwise(OpBuilder& builder, Operation* op, ValueRange operands) {
  Operation* clone = builder.clone(*op);
  clone->setOperands(operands);
  Value result = clone->getResult(0);
  result.setType(ir::tensorType(result).clone(ir::tensorType(operands.front()).getShape()));
  return result;
}

SmallVector<int64_t> normalisedDims(ir::LayerNormOp op) {
  return SmallVector<int64_t>(op.getDims());
}

SmallVector<int64_t> normalisedDims(ir::RmsNormOp op) {
  const auto rank = ir::tensorType(op.getOperand()).getRank();
  return llvm::to_vector(llvm::seq(static_cast<int64_t>(op.getAxis()), rank));
}

Value cloneNorm(const ir::TensorBuilder& b, ir::LayerNormOp op, Value operand,
                ArrayRef<int64_t> dims) {
  return b
      .create<ir::LayerNormOp>(operand, op.getScale(), op.getBias(), dims,
                               op.getEpsilon().convertToDouble())
      .getResult();
}

Value cloneNorm(const ir::TensorBuilder& b, ir::RmsNormOp op, Value operand,
                ArrayRef<int64_t> dims) {
  return b
      .create<ir::RmsNormOp>(operand, op.getScale(), dims.front(),
                             op.getEpsilon().convertToDouble())
      .getResult();
}

Value reshaped(const ir::TensorBuilder& b, Value value, ArrayRef<int64_t> shape) {
  RankedTensorType type = ir::tensorType(value);
  if (type.getShape() == shape)
    return value;
  if (auto constant = value.getDefiningOp<ir::ConstantOp>())
    if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()))
      return b.create<ir::ConstantOp>(cast<TypedAttr>(dense.isSplat()
                                                          ? dense.resizeSplat(type.clone(shape))
                                                          : dense.reshape(type.clone(shape))));
  if (auto reshape = value.getDefiningOp<ir::ReshapeOp>())
    return reshaped(b, reshape.getOperand(), shape);
  if (auto broadcast = value.getDefiningOp<ir::BroadcastOp>()) {
    // Splitting dimensions of the result: those of the operand split likewise.
    if (auto groups = matchLeadingMerge(shape, type.getShape())) {
      SmallVector<int64_t> inner, dims;
      for (int64_t d : broadcast.getDims())
        for (int64_t part : (*groups)[d]) {
          inner.push_back(shape[part]);
          dims.push_back(part);
        }
      return b.broadcast(reshaped(b, broadcast.getOperand(), inner), shape, dims);
    }
  }
  return b.reshape(value, shape);
}

Value transposed(const ir::TensorBuilder& b, Value value, ArrayRef<int64_t> permutation) {
  if (isIdentity(permutation))
    return value;
  RankedTensorType type = ir::tensorType(value);
  SmallVector<int64_t> shape;
  for (int64_t d : permutation)
    shape.push_back(type.getDimSize(d));
  if (auto constant = value.getDefiningOp<ir::ConstantOp>())
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return b.create<ir::ConstantOp>(cast<TypedAttr>(splat.resizeSplat(type.clone(shape))));
  if (auto inner = value.getDefiningOp<ir::TransposeOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t d : permutation)
      composed.push_back(inner.getPermutation()[d]);
    return transposed(b, inner.getOperand(), composed);
  }
  if (auto broadcast = value.getDefiningOp<ir::BroadcastOp>()) {
    SmallVector<int64_t> dims, order;
    for (auto [target, source] : llvm::enumerate(permutation)) {
      auto it = llvm::find(broadcast.getDims(), source);
      if (it == broadcast.getDims().end())
        continue;
      dims.push_back(static_cast<int64_t>(target));
      order.push_back(it - broadcast.getDims().begin());
    }
    return b.broadcast(transposed(b, broadcast.getOperand(), order), shape, dims);
  }
  return b.transpose(value, permutation);
}

bool movesUnitsAlone(ir::ReshapeOp reshape) {
  SmallVector<int64_t> from(ir::tensorType(reshape.getOperand()).getShape()),
      to(reshape.getType().getShape());
  llvm::erase(from, 1);
  llvm::erase(to, 1);
  return from == to;
}

bool isIdentity(ArrayRef<int64_t> permutation) {
  for (auto [i, d] : llvm::enumerate(permutation))
    if (d != static_cast<int64_t>(i))
      return false;
  return true;
}

SmallVector<int64_t> inverse(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> result(permutation.size());
  for (auto [i, d] : llvm::enumerate(permutation))
    result[d] = static_cast<int64_t>(i);
  return result;
}

} // namespace titan::frontend
