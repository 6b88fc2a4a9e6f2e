#include "compiler/Shard/PlacementRules.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace titan {

namespace {

using Placements = ArrayRef<AxisPlacement>;

/// All operands whole, all results alike.
AxisRule allOf(Operation* op, AxisPlacement result) {
  return {SmallVector<AxisPlacement>(op->getNumOperands()),
          SmallVector<AxisPlacement>(op->getNumResults(), result)};
}

/// Does a collective sum all that is made of `value`, padded or not?
bool isSummed(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), [](Operation* user) {
    return isa<dist::ReduceScatterOp, dist::AllReduceOp>(user) ||
           (isa<ir::PadOp>(user) && isSummed(user->getResult(0)));
  });
}

/// Does a cast keep terms apart? One that widens does not round; and a collective may sum in a
/// narrower type.
bool isCastOfTerms(Operation* op) {
  if (!isa<ir::ConvertOp>(op))
    return false;
  auto from = dyn_cast<FloatType>(getElementTypeOrSelf(op->getOperand(0))),
       to = dyn_cast<FloatType>(getElementTypeOrSelf(op->getResult(0)));
  if (from && to && to.getWidth() > from.getWidth())
    return true;
  return isSummed(op->getResult(0));
}

/// May the terms of the sums `operands` pass `op` one by one?
bool isLinear(Operation* op, Placements operands, bool isTree) {
  if (isa<ir::NegOp, ir::ReshapeOp, ir::TransposeOp, ir::SliceOp, ir::ReverseOp>(op))
    return true;
  if (auto pad = dyn_cast<ir::PadOp>(op))
    return pad.getValue().isZero();
  // What rounds a term would round the sum on one rank.
  if (isTree && op->getNumResults() > 0 && isa<FloatType>(getElementTypeOrSelf(op->getResult(0))))
    return false;
  if (isCastOfTerms(op))
    return true;
  const bool allPartial = llvm::all_of(operands, [](auto on) { return on.isPartial(); });
  if (isa<ir::AddOp, ir::SubOp>(op))
    return allPartial;
  if (!isa<ir::MulOp>(op) || allPartial)
    return false;
  return isOneValue(op->getOperand(operands[0].isPartial() ? 1 : 0));
}

/// Does operand `i` of `op` continue what the loop around it has summed so far?
bool continuesSum(Operation* op, Placements operands, unsigned i) {
  return operands[i].isPartial() && op->getOperand(i).getParentBlock() == op->getBlock();
}

/// In the body of a divided loop: is the op an addition to an accumulator?
bool accumulates(Operation* op, Placements operands) {
  if (isa<ir::AddOp>(op))
    return continuesSum(op, operands, 0) || continuesSum(op, operands, 1);
  auto accumulating = dyn_cast<ir::AccumulatingOpInterface>(op);
  if (!accumulating || !accumulating.getAcc())
    return false;
  const unsigned acc = accumulating.getAccMutable()[0].getOperandNumber();
  return continuesSum(op, operands, acc) &&
         llvm::count_if(operands, [](auto on) { return on.isPartial(); }) == 1;
}

AxisRule accumulate(Operation* op, Placements operands) {
  AxisRule rule = allOf(op, AxisPlacement::partial());
  for (auto [taken, operand] : llvm::zip_equal(rule.operands, operands))
    taken = operand.isShard() ? AxisPlacement() : operand;
  return rule;
}

/// May `op` work on parts at all? Elementwise ops, casts, updates and transposes make a part of a
/// part. What has dimensions that its operands have not is larger than they are, what a reshape
/// makes lies otherwise: both are made of the whole. And only the update sums over parts: forward
/// and backward would have to exchange the sum.
bool mayTakeParts(Operation* op, const ir::ShardingRule& factors) {
  if (isa<ir::ReshapeOp>(op))
    return false;
  if (isa<ir::ReduceOp>(op))
    return ir::getPhase(op) == ir::Phase::Update;
  auto isOfOperand = [&](ArrayRef<int64_t> list) {
    return llvm::all_of(list, [&](int64_t factor) {
      return llvm::any_of(factors.operands, [&](const ir::ShardingRule::Dims& dims) {
        return ir::ShardingRule::findDim(dims, factor) >= 0;
      });
    });
  };
  return llvm::all_of(factors.results, [&](const ir::ShardingRule::Dims& dims) {
    return llvm::all_of(dims, isOfOperand);
  });
}

/// The rule of an op that takes a part, or nothing where it needs the whole.
std::optional<AxisRule> shardRule(Operation* op, Placements operands, bool isTree) {
  auto shardable = dyn_cast<ir::ShardableOpInterface>(op);
  if (!shardable)
    return std::nullopt;
  const ir::ShardingRule factors = shardable.getShardingRule();
  if (!mayTakeParts(op, factors))
    return std::nullopt;
  const auto* cut = llvm::find_if(operands, [](auto on) { return on.isShard(); });
  const auto& list = factors.operands[cut - operands.begin()][cut->dim];
  if (list.empty() || !ir::isSplittable(factors.factors[list.front()].kind))
    return std::nullopt;
  const int64_t factor = list.front();
  AxisRule rule = allOf(op, AxisPlacement());
  int tensors = 0;
  for (auto [i, dims] : llvm::enumerate(factors.operands)) {
    const int64_t dim = ir::ShardingRule::findDim(dims, factor);
    tensors += !dims.empty();
    if (dim >= 0)
      rule.operands[i] = AxisPlacement::shard(dim);
    else if (!dims.empty())
      return std::nullopt; // an op on a part and a whole: a product, say
  }
  if (factors.factors[factor].kind == ir::FactorKind::Reduction && tensors > 1)
    return std::nullopt; // a sum of products
  for (auto [i, dims] : llvm::enumerate(factors.results)) {
    const int64_t dim = ir::ShardingRule::findDim(dims, factor);
    rule.results[i] = dim >= 0 ? AxisPlacement::shard(dim) : AxisPlacement::partial();
    // A sum of floats over parts would depend on where they are cut.
    if (isTree && dim < 0 && isa<FloatType>(getElementTypeOrSelf(op->getResult(i))))
      return std::nullopt;
  }
  return rule;
}

/// Sums give all ranks the same; gathers too. What they do not name passes as it is.
AxisRule collectiveRule(unsigned axis, Operation* op, Placements operands) {
  auto axes = op->getAttrOfType<ArrayAttr>("axes");
  const StringAttr name = dist::meshOf(op).getAxes()[axis];
  AxisRule rule = allOf(op, AxisPlacement());
  const bool isNamed = llvm::is_contained(axes, name);
  auto dims = op->getAttrOfType<DenseI64ArrayAttr>("dims");
  for (auto [i, operand] : llvm::enumerate(operands)) {
    if (!isNamed)
      rule.operands[i] = rule.results[i] = operand;
    else if (auto take = dyn_cast<dist::TakeShardOp>(op))
      rule.results[i] = AxisPlacement::shard(take.getDim());
    else if (isa<dist::AllGatherOp>(op))
      rule.operands[i] = AxisPlacement::shard(dims[i]);
    else // what is one microbatch's alone may be summed as well as what is a sum of several
      rule.operands[i] = operand.isIteration() ? operand : AxisPlacement::partial();
    if (isNamed && isa<dist::ReduceScatterOp>(op))
      rule.results[i] = AxisPlacement::shard(dims[i]);
  }
  return rule;
}

} // namespace

bool isOneValue(Value value) {
  auto type = dyn_cast<ShapedType>(value.getType());
  if (!type || type.getRank() == 0)
    return true;
  Operation* op = value.getDefiningOp();
  if (auto constant = dyn_cast_if_present<ir::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  auto broadcast = dyn_cast_if_present<ir::BroadcastOp>(op);
  return broadcast && isOneValue(broadcast.getOperand());
}

AxisRule ruleOn(unsigned axis, Operation* op, Placements operands, bool isDivided, bool isTree) {
  auto any = [&](bool (AxisPlacement::*is)() const) {
    return llvm::any_of(operands, [&](AxisPlacement on) { return (on.*is)(); });
  };
  if (auto coordinate = dyn_cast<dist::CoordinateOp>(op))
    return allOf(op, coordinate.getAxis() == dist::meshOf(op).getAxes()[axis].getValue()
                         ? AxisPlacement::iteration()
                         : AxisPlacement());
  if (dist::isWholeCollective(op) || isa<dist::TakeShardOp>(op))
    return collectiveRule(axis, op, operands);
  if (isDivided && any(&AxisPlacement::isPartial) && accumulates(op, operands))
    return accumulate(op, operands);
  if (any(&AxisPlacement::isIteration)) {
    AxisRule rule = allOf(op, AxisPlacement::iteration());
    for (auto [taken, operand] : llvm::zip_equal(rule.operands, operands))
      if (operand.isIteration())
        taken = operand;
    return rule;
  }
  if (any(&AxisPlacement::isShard))
    return shardRule(op, operands, isTree).value_or(allOf(op, AxisPlacement()));
  if (any(&AxisPlacement::isPartial) && isLinear(op, operands, isTree)) {
    AxisRule rule = allOf(op, AxisPlacement::partial());
    rule.operands.assign(operands.begin(), operands.end());
    return rule;
  }
  return allOf(op, AxisPlacement());
}

} // namespace titan
