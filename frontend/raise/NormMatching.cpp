#include "frontend/raise/NormMatching.h"

using namespace mlir;

namespace titan::frontend {

static bool isPrefix(ArrayRef<int64_t> dims) {
  for (auto [i, d] : llvm::enumerate(dims))
    if (d != static_cast<int64_t>(i))
      return false;
  return true;
}

/// `value` without the reshapes and broadcasts that repeat one number per row along trailing
/// dimensions.
static Value throughRowBroadcast(Value value) {
  while (Operation* op = value.getDefiningOp()) {
    if (auto broadcast = dyn_cast<ir::BroadcastOp>(op);
        broadcast ? !isPrefix(broadcast.getDims()) : !isa<ir::ReshapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// A sum over the dimensions from `axis` on, of `count` elements each.
struct Sum {
  Value operand;
  int64_t axis = -1, count = 1;
};

static std::optional<Sum> matchSum(Value value) {
  auto reduce = throughRowBroadcast(value).getDefiningOp<ir::ReduceOp>();
  if (!reduce || reduce.getKind() != ir::ReduceKind::Sum || reduce.getDims().empty())
    return std::nullopt;
  auto type = ir::tensorType(reduce.getOperand());
  Sum sum{reduce.getOperand(), reduce.getDims().front(), 1};
  if (static_cast<int64_t>(reduce.getDims().size()) != type.getRank() - sum.axis)
    return std::nullopt; // not the trailing dimensions
  for (int64_t d : reduce.getDims())
    sum.count *= type.getDimSize(d);
  return sum;
}

std::optional<Mean> matchMean(Value value) {
  // Reshapes put back the reduced dimensions, before or after the scaling.
  Product product = productOf(throughRowBroadcast(value));
  if (product.factors.size() != 1)
    return std::nullopt;
  std::optional<Sum> sum = matchSum(product.factors[0]);
  if (!sum || !isClose(product.constant, 1.0 / static_cast<double>(sum->count)))
    return std::nullopt;
  return Mean{sum->operand, sum->axis};
}

Value squaredValue(Value value) {
  if (auto mul = value.getDefiningOp<ir::MulOp>())
    return mul.getLhs() == mul.getRhs() ? mul.getLhs() : Value();
  auto pow = value.getDefiningOp<ir::PowOp>();
  return pow && splatOf(pow.getRhs()) == 2 ? pow.getLhs() : Value();
}

/// `value` as something that is at least a number: max(x, c), or c where x <= c, else x.
static std::optional<std::pair<Value, double>> matchFloor(Value value) {
  if (auto max = value.getDefiningOp<ir::MaxOp>())
    for (auto [x, c] : {std::pair(max.getLhs(), max.getRhs()), {max.getRhs(), max.getLhs()}})
      if (std::optional<double> floor = splatOf(c))
        return std::pair(x, *floor);
  auto select = value.getDefiningOp<ir::SelectOp>();
  auto below = select ? select.getCondition().getDefiningOp<ir::CompareOp>() : ir::CompareOp();
  if (!below || below.getPredicate() != ir::ComparePredicate::LE ||
      below.getLhs() != select.getOnFalse() || below.getRhs() != select.getOnTrue())
    return std::nullopt;
  std::optional<double> floor = splatOf(below.getRhs());
  return floor ? std::optional(std::pair(below.getLhs(), *floor)) : std::nullopt;
}

std::optional<Length> matchLength(Value divisor) {
  Length length;
  Value root = throughRowBroadcast(divisor);
  if (auto floor = matchFloor(root)) {
    length.floor = floor->second;
    root = throughRowBroadcast(floor->first);
  }
  auto sqrt = root.getDefiningOp<ir::SqrtOp>();
  std::optional<Sum> sum = sqrt ? matchSum(sqrt.getOperand()) : std::nullopt;
  length.operand = sum ? squaredValue(sum->operand) : Value();
  if (!length.operand)
    return std::nullopt;
  length.axis = sum->axis;
  length.count = sum->count;
  return length;
}

/// Root(mean(x^2) + epsilon)
template <typename Root> static std::optional<RootMeanSquare> matchRoot(Value value) {
  auto root = throughRowBroadcast(value).getDefiningOp<Root>();
  auto sum = root ? throughRowBroadcast(root->getOperand(0)).template getDefiningOp<ir::AddOp>()
                  : ir::AddOp();
  if (!sum)
    return std::nullopt;
  for (auto [square, constant] :
       {std::pair(sum.getLhs(), sum.getRhs()), {sum.getRhs(), sum.getLhs()}}) {
    std::optional<double> epsilon = splatOf(constant);
    std::optional<Mean> mean = epsilon ? matchMean(square) : std::nullopt;
    Value operand = mean ? squaredValue(mean->operand) : Value();
    if (operand)
      return RootMeanSquare{operand, mean->axis, *epsilon};
  }
  return std::nullopt;
}

template <> std::optional<RootMeanSquare> matchDivisor<ir::DivOp>(Value value) {
  return matchRoot<ir::SqrtOp>(value);
}

template <> std::optional<RootMeanSquare> matchDivisor<ir::MulOp>(Value value) {
  Value inner = throughRowBroadcast(value);
  if (auto reciprocal = inner.getDefiningOp<ir::DivOp>();
      reciprocal && splatOf(reciprocal.getLhs()) == 1.0)
    return matchRoot<ir::SqrtOp>(reciprocal.getRhs());
  // (mean + epsilon)^-0.5
  if (auto pow = inner.getDefiningOp<ir::PowOp>(); pow && splatOf(pow.getRhs()) == -0.5)
    return matchRoot<ir::PowOp>(inner);
  return matchRoot<ir::RsqrtOp>(value);
}

Value trailingOperand(Value value, int64_t axis) {
  auto broadcast = value.getDefiningOp<ir::BroadcastOp>();
  if (!broadcast)
    return {};
  auto expected = llvm::to_vector(llvm::seq<int64_t>(axis, ir::tensorType(value).getRank()));
  if (broadcast.getDims() != ArrayRef<int64_t>(expected))
    return {};
  return broadcast.getOperand();
}

} // namespace titan::frontend
