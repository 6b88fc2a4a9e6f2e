#include "compiler/Accumulate/BatchDimension.h"

using namespace mlir;

namespace titan {

BatchDimension::BatchDimension(accum::LoopOp loop) {
  for (BlockArgument slice : loop.getSlices())
    places_[slice] = cast<RankedTensorType>(slice.getType()).getRank() > 0
                         ? Place{Kind::Dim, 0}
                         : Place{Kind::Unknown, -1};
  for (Operation& op : loop.getBlock().without_terminator())
    visit(&op);
}

void BatchDimension::visit(Operation* op) {
  auto setAll = [&](Place place) {
    for (Value result : op->getResults())
      places_[result] = place;
  };
  auto independent = [&](Value operand) { return of(operand).kind == Kind::None; };
  if (llvm::all_of(op->getOperands(), independent))
    return;
  auto shardable = dyn_cast<ir::ShardableOpInterface>(op);
  if (!shardable)
    return setAll({Kind::Unknown, -1});

  // The one factor that is the batch in every operand that has it.
  ir::ShardingRule rule = shardable.getShardingRule();
  int64_t factor = -1;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Place place = of(operand);
    if (place.kind == Kind::None)
      continue;
    if (place.kind != Kind::Dim)
      return setAll(place.kind == Kind::Summed ? place : Place{Kind::Unknown, -1});
    const auto& factors = rule.operands[i][place.dim];
    if (factors.empty() || (factor >= 0 && factor != factors.front()))
      return setAll({Kind::Unknown, -1});
    factor = factors.front();
  }
  switch (rule.factors[factor].kind) {
  case ir::FactorKind::Whole:
    return setAll({Kind::Unknown, -1});
  case ir::FactorKind::Reduction:
    return setAll({Kind::Summed, -1});
  case ir::FactorKind::Joint:
  case ir::FactorKind::Parallel:
    for (auto [i, result] : llvm::enumerate(op->getResults())) {
      int64_t dim = ir::ShardingRule::findDim(rule.results[i], factor);
      const bool isStatistic = rule.factors[factor].kind == ir::FactorKind::Joint;
      places_[result] =
          dim >= 0 ? Place{Kind::Dim, dim} : Place{isStatistic ? Kind::Summed : Kind::Unknown, -1};
    }
  }
}

} // namespace titan
