#include "dialects/Titan/ops/Random.h"
#include "dialects/Titan/TensorBuilder.h"
#include "dialects/Titan/ops/OpSupport.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;

namespace titan::ir {

int64_t divisorOf(Value index) {
  APInt constant;
  if (matchPattern(index, m_ConstantInt(&constant)))
    return std::abs(constant.getSExtValue());
  if (auto add = index.getDefiningOp<arith::AddIOp>())
    return std::gcd(divisorOf(add.getLhs()), divisorOf(add.getRhs()));
  if (auto mul = index.getDefiningOp<arith::MulIOp>())
    return divisorOf(mul.getLhs()) * divisorOf(mul.getRhs());
  return 1;
}

LogicalResult DropoutOp::verify() {
  RankedTensorType type = tensorType(getOperand());
  if (tensorType(getResult()) != type)
    return emitOpError("the result's type is ") << type;
  if (failed(verifyProbability(*this)))
    return failure();
  ArrayRef<int64_t> shared = getShared();
  if (!llvm::is_sorted(shared, std::less_equal<int64_t>()) ||
      (!shared.empty() && (shared.front() < 0 || shared.back() >= type.getRank())))
    return emitOpError("(C5) [") << shared << "] are not dimensions of a rank of " << type.getRank()
                                 << ", in ascending order";
  return verifyRandom(*this, getDrawnShape());
}

SmallVector<int64_t> DropoutOp::getDrawnShape() {
  SmallVector<int64_t> shape(tensorType(getOperand()).getShape());
  for (int64_t d : getShared())
    shape[d] = 1;
  return shape;
}

SmallVector<int64_t> DropoutOp::getDrawnDims(unsigned operand) {
  if (operand > 0)
    return {};
  return llvm::to_vector(llvm::seq<int64_t>(0, tensorType(getOperand()).getRank()));
}

ShardingRule DropoutOp::getShardingRule() {
  // Decisions are keyed by the global index, so a piece needs a base of its own: whoever splits a
  // dropout (accumulate, shard) sets it. The dimensions themselves are independent.
  return elementwiseRule(*this);
}

LogicalResult RandomOp::verify() { return verifyRandom(*this, getType().getShape()); }

SmallVector<int64_t> RandomOp::getDrawnShape() {
  return SmallVector<int64_t>(getType().getShape());
}

SmallVector<Value> RandomOp::makeDeterministic() {
  OpBuilder builder(*this);
  return {
      TensorBuilder(builder, *this).splat(getType(), getKind() == RandomKind::Uniform ? 0.5 : 0)};
}

ShardingRule RandomOp::getShardingRule() { return elementwiseRule(*this); }

RandomOpInterface asRandom(Operation* op) {
  auto random = dyn_cast<RandomOpInterface>(op);
  return random && random.draws() ? random : RandomOpInterface();
}

SmallVector<RandomOpInterface> randomOps(Operation* root) {
  SmallVector<RandomOpInterface> ops;
  root->walk<WalkOrder::PreOrder>([&](Operation* op) {
    if (RandomOpInterface random = asRandom(op))
      ops.push_back(random);
  });
  return ops;
}

SmallVector<Value> replaceByDeterministic(RandomOpInterface random) {
  SmallVector<Value> values = random.makeDeterministic();
  if (!llvm::equal(values, random->getResults())) {
    random->replaceAllUsesWith(values);
    random->erase();
  }
  return values;
}

SmallVector<Value> replaceByEvaluation(Operation* op) {
  if (RandomOpInterface random = asRandom(op))
    return random.drawsInEvaluation() ? SmallVector<Value>(op->getResults())
                                      : replaceByDeterministic(random);
  if (auto other = dyn_cast<EvaluatedOtherwiseOpInterface>(op)) {
    OpBuilder builder(op);
    if (SmallVector<Value> values = other.buildEvaluation(builder); !values.empty()) {
      op->replaceAllUsesWith(values);
      op->erase();
      return values;
    }
  }
  return op->getResults();
}

} // namespace titan::ir
