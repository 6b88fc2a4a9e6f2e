#include "compiler/Support/BatchDimension.h"

using namespace mlir;

namespace titan {

BatchDimension::BatchDimension(Block& block, ValueRange batched) {
  for (Value value : batched) {
    auto type = cast<RankedTensorType>(value.getType());
    places_[value] = type.getRank() > 0 ? Place{Kind::Dim, 0} : Place{Kind::Unknown, -1};
    if (type.getRank() > 0)
      samples_ = type.getDimSize(0);
  }
  for (Operation& op : block.without_terminator())
    visit(&op);
}

int64_t BatchDimension::outermost(const ir::ShardingRule& rule, ArrayRef<int64_t> factors) const {
  if (samples_ == 1)
    return factors.empty() ? -1 : factors.front();
  const int64_t* found =
      llvm::find_if(factors, [&](int64_t factor) { return rule.factors[factor].size != 1; });
  return found == factors.end() ? -1 : *found;
}

BatchDimension::Place BatchDimension::find(const ir::ShardingRule& rule,
                                           const ir::ShardingRule::Dims& dims,
                                           int64_t factor) const {
  for (auto [d, factors] : llvm::enumerate(dims))
    if (llvm::is_contained(factors, factor))
      return {outermost(rule, factors) == factor ? Kind::Dim : Kind::Inner,
              static_cast<int64_t>(d)};
  return {Kind::Unknown, -1};
}

void BatchDimension::visit(Operation* op) {
  if (llvm::all_of(op->getOperands(),
                   [&](Value operand) { return of(operand).kind == Kind::None; }))
    return;
  if (llvm::any_of(op->getOperands(), [&](Value operand) { return joinsSamples(operand); }))
    joined_.insert_range(op->getResults());
  follow(op);
}

void BatchDimension::follow(Operation* op) {
  auto setAll = [&](Place place) {
    for (Value result : op->getResults())
      places_[result] = place;
  };
  auto shardable = dyn_cast<ir::ShardableOpInterface>(op);
  if (!shardable)
    return setAll({Kind::Unknown, -1});

  // The one factor that is the batch in every operand that has it.
  ir::ShardingRule rule = shardable.getShardingRule();
  int64_t batch = -1;
  bool isInner = false;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Place place = of(operand);
    if (place.kind == Kind::None)
      continue;
    if (place.kind != Kind::Dim && place.kind != Kind::Inner)
      return setAll(place.kind == Kind::Summed ? place : Place{Kind::Unknown, -1});
    const auto& factors = rule.operands[i][place.dim];
    const int64_t factor = outermost(rule, factors);
    // What takes an inner batch apart again is not followed.
    if (factor < 0 || (batch >= 0 && factor != batch) ||
        (place.kind == Kind::Inner && factors.size() > 1))
      return setAll({Kind::Unknown, -1});
    batch = factor;
    isInner |= place.kind == Kind::Inner;
  }
  const ir::FactorKind kind = rule.factors[batch].kind;
  if (kind == ir::FactorKind::Whole)
    return setAll({Kind::Unknown, -1});
  if (kind != ir::FactorKind::Parallel)
    joined_.insert_range(op->getResults());
  if (kind == ir::FactorKind::Reduction)
    return setAll({Kind::Summed, -1});
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    Place& place = places_[result] = find(rule, rule.results[i], batch);
    if (place.kind == Kind::Dim && isInner)
      place.kind = Kind::Inner;
    if (place.kind == Kind::Unknown && kind == ir::FactorKind::Joint) // a statistic
      place.kind = Kind::Summed;
  }
}

} // namespace titan
