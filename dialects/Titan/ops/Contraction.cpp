#include "dialects/Titan/ops/OpSupport.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace titan::ir {

/// The dimensions of a tensor of `rank` that are neither `batch` nor `contracting`.
static SmallVector<int64_t> freeDims(int64_t rank, ArrayRef<int64_t> batch,
                                     ArrayRef<int64_t> contracting) {
  SmallVector<int64_t> free;
  for (int64_t d = 0; d < rank; ++d)
    if (!llvm::is_contained(batch, d) && !llvm::is_contained(contracting, d))
      free.push_back(d);
  return free;
}

SmallVector<int64_t> ContractOp::getLhsFree() {
  return freeDims(tensorType(getLhs()).getRank(), getLhsBatch(), getLhsContracting());
}

SmallVector<int64_t> ContractOp::getRhsFree() {
  return freeDims(tensorType(getRhs()).getRank(), getRhsBatch(), getRhsContracting());
}

int64_t ContractOp::getFlops() {
  int64_t depth = 1;
  for (int64_t d : getLhsContracting())
    depth *= tensorType(getLhs()).getDimSize(d);
  return 2 * depth * tensorType(getResult()).getNumElements();
}

LogicalResult ContractOp::verify() {
  RankedTensorType lhs = tensorType(getLhs()), rhs = tensorType(getRhs());
  auto distinctWithin = [](ArrayRef<int64_t> a, ArrayRef<int64_t> b, int64_t rank) {
    llvm::SmallSet<int64_t, 8> seen;
    for (int64_t d : llvm::concat<const int64_t>(a, b))
      if (d < 0 || d >= rank || !seen.insert(d).second)
        return false;
    return true;
  };
  if (getLhsBatch().size() != getRhsBatch().size() ||
      getLhsContracting().size() != getRhsContracting().size() ||
      !distinctWithin(getLhsBatch(), getLhsContracting(), lhs.getRank()) ||
      !distinctWithin(getRhsBatch(), getRhsContracting(), rhs.getRank()))
    return emitOpError("(C1) batch and contracting dimensions do not pair up for ")
           << lhs << " and " << rhs;
  for (auto [l, r] : llvm::concat<const std::tuple<int64_t, int64_t>>(
           llvm::to_vector(llvm::map_range(llvm::zip(getLhsBatch(), getRhsBatch()),
                                           [](auto p) { return std::tuple<int64_t, int64_t>(p); })),
           llvm::to_vector(
               llvm::map_range(llvm::zip(getLhsContracting(), getRhsContracting()),
                               [](auto p) { return std::tuple<int64_t, int64_t>(p); }))))
    if (lhs.getDimSize(l) != rhs.getDimSize(r))
      return emitOpError("(C2) lhs dimension ")
             << l << " has extent " << lhs.getDimSize(l) << ", rhs dimension " << r << " has "
             << rhs.getDimSize(r);
  if (lhs.getElementType() != rhs.getElementType() ||
      tensorType(getResult()).getElementType() != accumulationType(lhs.getElementType()))
    return emitOpError("(C3) ") << lhs.getElementType() << " and " << rhs.getElementType()
                                << " do not give " << tensorType(getResult()).getElementType();
  RankedTensorType expected = contractType(lhs, rhs, getLhsBatch(), getRhsBatch(),
                                           getLhsContracting(), getRhsContracting());
  if (tensorType(getResult()) != expected || (getAcc() && tensorType(getAcc()) != expected))
    return emitOpError("(C4) the result's type is ") << expected;
  return success();
}

ShardingRule ContractOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  RankedTensorType lhs = tensorType(getLhs()), rhs = tensorType(getRhs());
  int64_t position = 0;
  auto result = [&](int64_t factor) {
    rule.results[0][position] = {factor};
    if (getAcc())
      rule.operands[2][position] = {factor};
    ++position;
  };
  for (auto [l, r] : llvm::zip_equal(getLhsBatch(), getRhsBatch())) {
    int64_t factor = rule.addFactor(lhs.getDimSize(l), FactorKind::Parallel);
    rule.operands[0][l] = rule.operands[1][r] = {factor};
    result(factor);
  }
  for (int64_t d : getLhsFree()) {
    int64_t factor = rule.addFactor(lhs.getDimSize(d), FactorKind::Parallel);
    rule.operands[0][d] = {factor};
    result(factor);
  }
  for (int64_t d : getRhsFree()) {
    int64_t factor = rule.addFactor(rhs.getDimSize(d), FactorKind::Parallel);
    rule.operands[1][d] = {factor};
    result(factor);
  }
  // With an accumulator the pieces' sum would count it once a piece.
  FactorKind contracted = getAcc() ? FactorKind::Whole : FactorKind::Reduction;
  for (auto [l, r] : llvm::zip_equal(getLhsContracting(), getRhsContracting())) {
    int64_t factor = rule.addFactor(lhs.getDimSize(l), contracted);
    rule.operands[0][l] = rule.operands[1][r] = {factor};
  }
  return rule;
}

} // namespace titan::ir
