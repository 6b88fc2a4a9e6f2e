#include "compiler/Support/RandomOp.h"

using namespace mlir;

namespace titan {

namespace {

/// `function` of `op` as what it is.
template <typename Function> auto dispatch(Operation* op, Function function) {
  if (auto dropout = dyn_cast<ir::DropoutOp>(op))
    return function(dropout);
  if (auto attention = dyn_cast<ir::AttentionOp>(op))
    return function(attention);
  return function(cast<ir::AttentionGradOp>(op));
}

} // namespace

bool RandomOp::classof(Operation* op) {
  if (auto attention = dyn_cast<ir::AttentionOp>(op))
    return !attention.getP().isZero();
  if (auto attention = dyn_cast<ir::AttentionGradOp>(op))
    return !attention.getP().isZero();
  return isa<ir::DropoutOp>(op);
}

uint64_t RandomOp::stream() const {
  return dispatch(op_, [](auto op) { return static_cast<uint64_t>(op.getStream()); });
}

SmallVector<int64_t> RandomOp::shape() const {
  auto shapeOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getShape(); };
  if (auto dropout = dyn_cast<ir::DropoutOp>(op_))
    return SmallVector<int64_t>(shapeOf(dropout.getOperand()));
  ArrayRef<int64_t> query = shapeOf(op_->getOperand(0)), key = shapeOf(op_->getOperand(1));
  return {query[0], query[2], query[1], key[1]};
}

SmallVector<int64_t> RandomOp::dimsOf(unsigned operand) const {
  if (isa<ir::DropoutOp>(op_)) {
    if (operand > 0)
      return {};
    return llvm::to_vector(llvm::seq<int64_t>(0, shape().size()));
  }
  // query [B, T, H, D]; key and value [B, S, G, D], where a head of keys is a group of heads.
  if (operand == 0)
    return {0, 2, 1, -1};
  if (operand < 3)
    return {0, 3, -1, -1};
  return {};
}

bool RandomOp::isSeeded() const {
  return dispatch(op_, [](auto op) { return bool(op.getSeed()); });
}

bool RandomOp::isPlaced() const {
  return dispatch(op_, [](auto op) { return bool(op.getWindow()); });
}

void RandomOp::seed(Value seed, Value step) {
  dispatch(op_, [&](auto op) {
    op.getSeedMutable().assign(seed);
    op.getStepMutable().assign(step);
  });
}

void RandomOp::place(ir::WindowAttr window, Value microbatch) {
  dispatch(op_, [&](auto op) {
    op.setWindowAttr(window);
    if (microbatch)
      op.getMicrobatchMutable().assign(microbatch);
  });
}

void RandomOp::dropMicrobatch() {
  dispatch(op_, [](auto op) { op.getMicrobatchMutable().clear(); });
}

void RandomOp::dropNothing() {
  dispatch(op_, [](auto op) { op.setP(APFloat(0.0)); });
}

void forEachRandomOp(Operation* root, llvm::function_ref<void(RandomOp)> function) {
  root->walk<WalkOrder::PreOrder>([&](Operation* op) {
    if (RandomOp::classof(op))
      function(RandomOp(op));
  });
}

} // namespace titan
