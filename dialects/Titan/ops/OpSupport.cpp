#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

bool isPermutation(ArrayRef<int64_t> values, int64_t rank) {
  if (static_cast<int64_t>(values.size()) != rank)
    return false;
  SmallVector<bool> seen(rank, false);
  for (int64_t v : values) {
    if (v < 0 || v >= rank || seen[v])
      return false;
    seen[v] = true;
  }
  return true;
}

bool isIncreasingWithin(ArrayRef<int64_t> values, int64_t rank) {
  int64_t previous = -1;
  for (int64_t v : values) {
    if (v <= previous || v >= rank)
      return false;
    previous = v;
  }
  return true;
}

int64_t largestExtent(Operation* op) {
  int64_t elements = 0;
  auto visit = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      elements = std::max(elements, tensor.getNumElements());
  };
  llvm::for_each(op->getOperandTypes(), visit);
  llvm::for_each(op->getResultTypes(), visit);
  return elements;
}

LogicalResult verifyDim(Operation* op, int64_t dim, int64_t rank) {
  if (dim < 0 || dim >= rank)
    return op->emitOpError("(C1) dim ") << dim << " is outside the rank " << rank;
  return success();
}

ShardingRule emptyRule(Operation* op) {
  ShardingRule rule;
  auto resize = [](ShardingRule::Dims& dims, Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      dims.resize(tensor.getRank());
  };
  rule.operands.resize(op->getNumOperands());
  rule.results.resize(op->getNumResults());
  for (auto [dims, operand] : llvm::zip_equal(rule.operands, op->getOperands()))
    resize(dims, operand.getType());
  for (auto [dims, result] : llvm::zip_equal(rule.results, op->getResults()))
    resize(dims, result.getType());
  return rule;
}

ShardingRule elementwiseRule(Operation* op, ArrayRef<int64_t> wholeDims) {
  ShardingRule rule = emptyRule(op);
  ArrayRef<int64_t> shape = tensorType(op->getResult(0)).getShape();
  for (auto [d, extent] : llvm::enumerate(shape)) {
    bool whole = llvm::is_contained(wholeDims, static_cast<int64_t>(d));
    int64_t factor = rule.addFactor(extent, whole ? FactorKind::Whole : FactorKind::Parallel);
    for (auto* side : {&rule.operands, &rule.results})
      for (ShardingRule::Dims& dims : *side)
        if (dims.size() == shape.size())
          dims[d] = {factor};
  }
  return rule;
}

} // namespace titan::ir
