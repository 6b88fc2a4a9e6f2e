// Builders that infer the result type.
#include "dialects/Titan/ResultTypes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace titan::ir {

Type accumulationType(Type element) {
  return element.isF64() ? element : Float32Type::get(element.getContext());
}

RankedTensorType contractType(RankedTensorType lhs, RankedTensorType rhs,
                              ArrayRef<int64_t> lhsBatch, ArrayRef<int64_t> rhsBatch,
                              ArrayRef<int64_t> lhsContracting, ArrayRef<int64_t> rhsContracting) {
  SmallVector<int64_t> shape;
  for (int64_t d : lhsBatch)
    shape.push_back(lhs.getDimSize(d));
  for (int64_t d = 0; d < lhs.getRank(); ++d)
    if (!llvm::is_contained(lhsBatch, d) && !llvm::is_contained(lhsContracting, d))
      shape.push_back(lhs.getDimSize(d));
  for (int64_t d = 0; d < rhs.getRank(); ++d)
    if (!llvm::is_contained(rhsBatch, d) && !llvm::is_contained(rhsContracting, d))
      shape.push_back(rhs.getDimSize(d));
  return RankedTensorType::get(shape, accumulationType(lhs.getElementType()));
}

RankedTensorType embeddingType(RankedTensorType table, RankedTensorType indices) {
  SmallVector<int64_t> shape(indices.getShape());
  llvm::append_range(shape, table.getShape().drop_front());
  return table.clone(shape);
}

RankedTensorType attentionType(RankedTensorType query, RankedTensorType value) {
  SmallVector<int64_t> shape(query.getShape());
  shape.back() = value.getShape().back();
  return query.clone(shape);
}

RankedTensorType logSumExpType(RankedTensorType query) {
  ArrayRef<int64_t> shape = query.getShape(); // [B, T, H, D]
  return RankedTensorType::get({shape[0], shape[2], shape[1]},
                               accumulationType(query.getElementType()));
}

bool keepsLargestScore(Value mask, FloatAttr fill) {
  return fill || (mask && !tensorType(mask).getElementType().isInteger(1));
}

SmallVector<int64_t> withoutDims(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> kept;
  for (auto [d, extent] : llvm::enumerate(shape))
    if (!llvm::is_contained(dims, static_cast<int64_t>(d)))
      kept.push_back(extent);
  return kept;
}

void ContractOp::build(OpBuilder& builder, OperationState& state, Value lhs, Value rhs, Value acc,
                       ArrayRef<int64_t> lhsBatch, ArrayRef<int64_t> rhsBatch,
                       ArrayRef<int64_t> lhsContracting, ArrayRef<int64_t> rhsContracting,
                       ArrayAttr path, PhaseAttr phase) {
  build(builder, state,
        contractType(tensorType(lhs), tensorType(rhs), lhsBatch, rhsBatch, lhsContracting,
                     rhsContracting),
        lhs, rhs, acc, lhsBatch, rhsBatch, lhsContracting, rhsContracting, path, phase);
}

void TransposeOp::build(OpBuilder& builder, OperationState& state, Value operand,
                        ArrayRef<int64_t> permutation, ArrayAttr path, PhaseAttr phase) {
  SmallVector<int64_t> shape;
  for (int64_t d : permutation)
    shape.push_back(tensorType(operand).getDimSize(d));
  build(builder, state, tensorType(operand).clone(shape), operand, permutation, path, phase);
}

void ConcatOp::build(OpBuilder& builder, OperationState& state, ValueRange inputs, int64_t dim,
                     ArrayAttr path, PhaseAttr phase) {
  SmallVector<int64_t> shape(tensorType(inputs.front()).getShape());
  shape[dim] = 0;
  for (Value input : inputs)
    shape[dim] += tensorType(input).getDimSize(dim);
  build(builder, state, tensorType(inputs.front()).clone(shape), inputs, dim, path, phase);
}

void ReduceOp::build(OpBuilder& builder, OperationState& state, ReduceKind kind, Value operand,
                     ArrayRef<int64_t> dims, ArrayAttr path, PhaseAttr phase) {
  RankedTensorType type = tensorType(operand);
  build(builder, state, type.clone(withoutDims(type.getShape(), dims)), kind, operand, dims, path,
        phase);
}

void ArgmaxOp::build(OpBuilder& builder, OperationState& state, Value operand, int64_t dim,
                     ArrayAttr path, PhaseAttr phase) {
  RankedTensorType type = tensorType(operand);
  build(builder, state,
        RankedTensorType::get(withoutDims(type.getShape(), dim), builder.getI64Type()), operand,
        dim, path, phase);
}

void LayerNormOp::build(OpBuilder& builder, OperationState& state, Value operand, Value scale,
                        Value bias, ArrayRef<int64_t> dims, double epsilon, ArrayAttr path,
                        PhaseAttr phase) {
  RankedTensorType type = tensorType(operand);
  auto statistic = RankedTensorType::get(withoutDims(type.getShape(), dims),
                                         accumulationType(type.getElementType()));
  build(builder, state, {type, statistic, statistic}, operand, scale, bias,
        builder.getDenseI64ArrayAttr(dims), builder.getF64FloatAttr(epsilon), path, phase);
}

void RmsNormOp::build(OpBuilder& builder, OperationState& state, Value operand, Value scale,
                      int64_t axis, double epsilon, ArrayAttr path, PhaseAttr phase) {
  RankedTensorType type = tensorType(operand);
  auto statistic = RankedTensorType::get(type.getShape().take_front(axis),
                                         accumulationType(type.getElementType()));
  build(builder, state, {type, statistic}, operand, scale, builder.getI64IntegerAttr(axis),
        builder.getF64FloatAttr(epsilon), path, phase);
}

void EmbeddingOp::build(OpBuilder& builder, OperationState& state, Value table, Value indices,
                        ArrayAttr path, PhaseAttr phase) {
  build(builder, state, embeddingType(tensorType(table), tensorType(indices)), table, indices,
        /*padding=*/IntegerAttr(), path, phase);
}

void AttentionOp::build(OpBuilder& builder, OperationState& state, Value query, Value key,
                        Value value, Value mask, double scale, bool causal, FloatAttr fill,
                        ArrayAttr path, PhaseAttr phase) {
  RankedTensorType statistic = logSumExpType(tensorType(query));
  SmallVector<Type> types = {attentionType(tensorType(query), tensorType(value)), statistic};
  if (keepsLargestScore(mask, fill))
    types.push_back(statistic);
  build(builder, state, types, query, key, value, mask, /*seed=*/Value(), /*step=*/Value(),
        /*base=*/Value(), APFloat(scale), causal, APFloat(0.0), /*stream=*/0,
        /*window=*/WindowAttr(), fill, path, phase);
}

} // namespace titan::ir
