// titan-accumulate-move-transposes: weights and their gradients are turned once a step.
#include "compiler/Accumulate/Passes.h"
#include "compiler/Support/RecipeAttribute.h"
#include "dialects/Titan/TensorBuilder.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_MOVETRANSPOSES
#include "compiler/Accumulate/Passes.h.inc"

namespace {

bool isDefinedOutside(accum::LoopOp loop, Value value) {
  return !loop.getBody().isAncestor(value.getParentRegion());
}

/// A transposition of what is there before the loop, and its cast, are the same in each microbatch.
void hoistWeights(accum::LoopOp loop) {
  for (Operation& op : llvm::make_early_inc_range(loop.getBlock())) {
    const bool isCast = isa<ir::ConvertOp>(op) &&
                        isa_and_present<ir::TransposeOp>(op.getOperand(0).getDefiningOp());
    if ((isCast || isa<ir::TransposeOp>(op)) && isDefinedOutside(loop, op.getOperand(0)))
      op.moveBefore(loop);
  }
}

/// How the terms that `term` adds up are all transposed, if they are, and it is the only one that
/// reads them.
std::optional<ArrayRef<int64_t>> permutationOf(Value term) {
  if (!term.hasOneUse())
    return std::nullopt;
  if (auto transpose = term.getDefiningOp<ir::TransposeOp>())
    return transpose.getPermutation();
  auto add = term.getDefiningOp<ir::AddOp>();
  if (!add)
    return std::nullopt;
  const std::optional<ArrayRef<int64_t>> left = permutationOf(add.getLhs());
  return left && left == permutationOf(add.getRhs()) ? left : std::nullopt;
}

/// `term`, which permutationOf() has one for, before it is transposed.
Value beforeTransposing(Value term) {
  if (auto transpose = term.getDefiningOp<ir::TransposeOp>())
    return transpose.getOperand();
  auto add = term.getDefiningOp<ir::AddOp>();
  const Value left = beforeTransposing(add.getLhs()), right = beforeTransposing(add.getRhs());
  OpBuilder builder(add);
  return ir::TensorBuilder(builder, add).add(left, right);
}

/// The sum of transposed terms is the transposed sum, bit for bit.
void sinkBehind(accum::LoopOp loop) {
  OpBuilder builder(loop->getNextNode());
  Operation* yield = loop.getBlock().getTerminator();
  for (OpResult sum : loop.getSums()) {
    OpOperand& term = yield->getOpOperand(sum.getResultNumber());
    const std::optional<ArrayRef<int64_t>> permutation = permutationOf(term.get());
    if (!permutation)
      continue;
    const ir::TensorBuilder t(builder, term.get().getDefiningOp());
    term.set(beforeTransposing(term.get()));
    sum.setType(term.get().getType());
    const Value turned = t.transpose(sum, *permutation);
    sum.replaceAllUsesExcept(turned, turned.getDefiningOp());
  }
}

struct MoveTransposes : impl::MoveTransposesBase<MoveTransposes> {
  void runOnOperation() override {
    FailureOr<Recipe> recipe = getRecipe(getOperation());
    if (failed(recipe))
      return signalPassFailure();
    if (recipe->localMicrobatches() == 1)
      return; // it would only live longer
    getOperation().walk([](accum::LoopOp loop) {
      hoistWeights(loop);
      if (loop.getOrder() != accum::Order::Running)
        sinkBehind(loop);
      eraseDead(loop);
    });
  }

  static void eraseDead(accum::LoopOp loop) {
    for (Operation& op : llvm::make_early_inc_range(llvm::reverse(loop.getBlock())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
};

} // namespace

} // namespace titan
