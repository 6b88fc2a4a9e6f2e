#include "dialects/Titan/ScatterShape.h"
#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

template <typename Op> static ScatterShape shapeOfPlaced(Op op) {
  RankedTensorType operand = tensorType(op.getOperand()), indices = tensorType(op.getIndices());
  const auto dim = static_cast<int64_t>(op.getDim()), shared = indices.getRank();
  ScatterShape shape{.entries = operand.getDimSize(dim), .rows = indices.getDimSize(dim)};
  for (auto [d, extent] : llvm::enumerate(operand.getShape())) {
    const auto at = static_cast<int64_t>(d);
    if (at != dim)
      (at < dim ? shape.outer : at < shared ? shape.inner : shape.width) *= extent;
  }
  return shape;
}

ScatterShape shapeOf(ScatterOp op) { return shapeOfPlaced(op); }
ScatterShape shapeOf(GatherOp op) { return shapeOfPlaced(op); }

LogicalResult ScatterOp::verify() {
  RankedTensorType operand = tensorType(getOperand()), indices = tensorType(getIndices()),
                   updates = tensorType(getUpdates());
  const auto dim = static_cast<int64_t>(getDim());
  if (dim < 0 || dim >= operand.getRank())
    return emitOpError("(C1) dim ") << dim << " is outside the rank " << operand.getRank();
  bool fits = updates.getRank() == operand.getRank() &&
              updates.getElementType() == operand.getElementType();
  for (int64_t d = 0; fits && d < operand.getRank(); ++d)
    fits = d == dim || updates.getDimSize(d) == operand.getDimSize(d);
  if (!fits)
    return emitOpError("(C1) updates ") << updates << " do not fit " << operand << " along " << dim;
  if (indices.getRank() <= dim || indices.getRank() > updates.getRank() ||
      indices.getShape() != updates.getShape().take_front(indices.getRank()))
    return emitOpError("(C2) indices ") << indices << " do not have the leading dimensions of "
                                        << updates << ", " << dim << " among them";
  if (tensorType(getResult()) != operand)
    return emitOpError("(C3) the result has the type ") << operand;
  if (operand.getElementType().isInteger(1) && getKind() != ScatterKind::None)
    return emitOpError("(C3) truth values are replaced only");
  return success();
}

ShardingRule ScatterOp::getShardingRule() {
  // Updates go anywhere along `dim`; each is met by the elements of its other coordinates alone.
  ShardingRule rule = emptyRule(*this);
  RankedTensorType operand = tensorType(getOperand()), updates = tensorType(getUpdates());
  const auto shared = static_cast<size_t>(tensorType(getIndices()).getRank());
  for (size_t d = 0; d < static_cast<size_t>(operand.getRank()); ++d) {
    const bool isPlaced = d == getDim();
    int64_t factor =
        rule.addFactor(operand.getDimSize(d), isPlaced ? FactorKind::Whole : FactorKind::Parallel);
    rule.operands[0][d] = rule.results[0][d] = {factor};
    if (isPlaced)
      factor = rule.addFactor(updates.getDimSize(d), FactorKind::Whole);
    rule.operands[2][d] = {factor};
    if (d < shared)
      rule.operands[1][d] = {factor};
  }
  return rule;
}

} // namespace titan::ir
