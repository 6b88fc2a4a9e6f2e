#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

static bool isRow(std::optional<uint64_t> row, RankedTensorType table) {
  return !row || *row < static_cast<uint64_t>(table.getDimSize(0));
}

LogicalResult EmbeddingOp::verify() {
  RankedTensorType table = tensorType(getTable()), indices = tensorType(getIndices());
  if (table.getRank() == 0)
    return emitOpError("(C1) the table has no rows");
  if (tensorType(getResult()) != embeddingType(table, indices))
    return emitOpError("(C1) the result's type is ") << embeddingType(table, indices);
  if (!isRow(getPadding(), table))
    return emitOpError("(C2) padding ")
           << static_cast<int64_t>(*getPadding()) << " is no row of " << table;
  return success();
}

LogicalResult EmbeddingGradOp::verify() {
  RankedTensorType dresult = tensorType(getDresult()), indices = tensorType(getIndices()),
                   result = tensorType(getResult());
  int64_t rank = indices.getRank();
  if (dresult.getRank() < rank || dresult.getShape().take_front(rank) != indices.getShape())
    return emitOpError("(C1) dresult ")
           << dresult << " does not begin with the dimensions of " << indices;
  SmallVector<int64_t> shape = {static_cast<int64_t>(getRows())};
  llvm::append_range(shape, dresult.getShape().drop_front(rank));
  if (result != RankedTensorType::get(shape, accumulationType(dresult.getElementType())))
    return emitOpError("(C1) ") << result << " is no gradient of " << getRows() << " rows for "
                                << dresult;
  if (getAcc() && tensorType(getAcc()) != result)
    return emitOpError("(C2) acc ") << tensorType(getAcc()) << " is not " << result;
  if (!isRow(getPadding(), result))
    return emitOpError("(C3) padding ")
           << static_cast<int64_t>(*getPadding()) << " is no row of " << result;
  return success();
}

/// The operand's type with the extent of indices along `dim`; null where they do not fit.
static RankedTensorType gatheredType(RankedTensorType operand, RankedTensorType indices,
                                     int64_t dim) {
  if (dim < 0 || dim >= indices.getRank() || indices.getRank() > operand.getRank())
    return {};
  SmallVector<int64_t> shape(operand.getShape());
  shape[dim] = indices.getDimSize(dim);
  if (indices.getShape() != ArrayRef(shape).take_front(indices.getRank()))
    return {};
  return operand.clone(shape);
}

void GatherOp::build(OpBuilder& builder, OperationState& state, Value operand, Value indices,
                     int64_t dim, ArrayAttr path, PhaseAttr phase) {
  build(builder, state, gatheredType(tensorType(operand), tensorType(indices), dim), operand,
        indices, builder.getI64IntegerAttr(dim), path, phase);
}

LogicalResult GatherOp::verify() {
  RankedTensorType operand = tensorType(getOperand()), indices = tensorType(getIndices());
  const auto dim = static_cast<int64_t>(getDim());
  if (dim < 0 || dim >= operand.getRank())
    return emitOpError("(C1) dim ") << dim << " is outside the rank " << operand.getRank();
  RankedTensorType type = gatheredType(operand, indices, dim);
  if (!type)
    return emitOpError("(C1) indices ") << indices << " do not have the leading dimensions of "
                                        << operand << ", " << dim << " among them";
  if (tensorType(getResult()) != type)
    return emitOpError("(C2) the result's type is ") << type;
  return success();
}

ShardingRule GatherOp::getShardingRule() {
  // Elements are looked up anywhere along `dim`; the other coordinates are the result's own.
  ShardingRule rule = emptyRule(*this);
  RankedTensorType operand = tensorType(getOperand()), indices = tensorType(getIndices());
  const auto shared = static_cast<size_t>(indices.getRank());
  for (size_t d = 0; d < static_cast<size_t>(operand.getRank()); ++d) {
    const bool isPlaced = d == getDim();
    int64_t factor =
        rule.addFactor(operand.getDimSize(d), isPlaced ? FactorKind::Whole : FactorKind::Parallel);
    rule.operands[0][d] = {factor};
    if (isPlaced)
      factor = rule.addFactor(indices.getDimSize(d), FactorKind::Parallel);
    rule.results[0][d] = {factor};
    if (d < shared)
      rule.operands[1][d] = {factor};
  }
  return rule;
}

ShardingRule EmbeddingOp::getShardingRule() {
  // Rows are looked up anywhere in the table, so it stays whole along them.
  ShardingRule rule = emptyRule(*this);
  ArrayRef<int64_t> table = tensorType(getTable()).getShape();
  int64_t position = 0;
  for (auto [d, extent] : llvm::enumerate(tensorType(getIndices()).getShape())) {
    int64_t factor = rule.addFactor(extent, FactorKind::Parallel);
    rule.operands[1][d] = rule.results[0][position++] = {factor};
  }
  rule.operands[0][0] = {rule.addFactor(table[0], FactorKind::Whole)};
  for (size_t d = 1; d < table.size(); ++d)
    rule.operands[0][d] =
        rule.results[0][position++] = {rule.addFactor(table[d], FactorKind::Parallel)};
  return rule;
}

ShardingRule EmbeddingGradOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  ArrayRef<int64_t> dresult = tensorType(getDresult()).getShape();
  int64_t leading = tensorType(getIndices()).getRank();
  int64_t rows = rule.addFactor(getRows(), FactorKind::Whole);
  rule.results[0][0] = {rows};
  if (getAcc())
    rule.operands[2][0] = {rows};
  for (int64_t d = 0; d < static_cast<int64_t>(dresult.size()); ++d) {
    // With an accumulator the pieces' sum would count it once a piece.
    FactorKind kind = d >= leading ? FactorKind::Parallel
                      : getAcc()   ? FactorKind::Whole
                                   : FactorKind::Reduction;
    int64_t factor = rule.addFactor(dresult[d], kind);
    rule.operands[0][d] = {factor};
    if (d < leading) {
      rule.operands[1][d] = {factor};
      continue;
    }
    rule.results[0][d - leading + 1] = {factor};
    if (getAcc())
      rule.operands[2][d - leading + 1] = {factor};
  }
  return rule;
}

} // namespace titan::ir
