#include "compiler/Shard/Passes.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/SumTree.h"
#include "dialects/Titan/TensorBuilder.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_FOLDCONTRACTIONS
#include "compiler/Shard/Passes.h.inc"

namespace {

/// The op that computes `term`, if nothing but its sum uses it and it can add to an operand.
ir::AccumulatingOpInterface foldable(Value term, Block& block) {
  auto op = term.getDefiningOp<ir::AccumulatingOpInterface>();
  bool ownUse = term.use_empty() || term.hasOneUse();
  return op && ownUse && op->getBlock() == &block ? op : ir::AccumulatingOpInterface();
}

/// Takes what a foldable term of `terms` is already added to as a term of its own.
void separateAccumulators(SmallVectorImpl<Value>& terms, Block& block) {
  for (size_t i = 0; i < terms.size(); ++i) {
    ir::AccumulatingOpInterface op = foldable(terms[i], block);
    if (!op || !op.getAcc())
      continue;
    terms.push_back(op.getAcc());
    op.getAccMutable().clear();
  }
}

/// The op of `block` that computes `value`; null for what is there before the block begins.
Operation* producer(Value value, Block& block) {
  Operation* op = value.getDefiningOp();
  return op && op->getBlock() == &block ? op : nullptr;
}

/// `terms` in the order of the block; first what is there before it begins.
SmallVector<Value> inOrder(ArrayRef<Value> terms, Block& block) {
  SmallVector<std::pair<Operation*, size_t>> keys;
  for (auto [i, term] : llvm::enumerate(terms))
    keys.emplace_back(producer(term, block), i);
  llvm::sort(keys, [](auto x, auto y) {
    auto [a, i] = x;
    auto [b, j] = y;
    if (a == b)
      return i < j;
    return a && b ? a->isBeforeInBlock(b) : !a;
  });
  return llvm::map_to_vector(keys, [&](auto key) { return terms[key.second]; });
}

/// The sum of `accumulator`, if there is one, and `terms`, each added where it is computed.
Value sumInOrder(Value accumulator, ir::AddOp root, ArrayRef<Value> terms) {
  Block& block = *root->getBlock();
  Value sum = accumulator;
  for (Value term : inOrder(terms, block)) {
    if (!sum) {
      sum = term;
      continue;
    }
    if (ir::AccumulatingOpInterface op = foldable(term, block)) {
      op.getAccMutable().assign(sum);
      sum = term;
      continue;
    }
    Operation *before = producer(sum, block), *op = producer(term, block);
    if (!before || (op && before->isBeforeInBlock(op)))
      before = op;
    OpBuilder builder(root);
    if (before)
      builder.setInsertionPointAfter(before);
    else
      builder.setInsertionPointToStart(&block);
    sum = ir::TensorBuilder(builder, root).add(sum, term);
  }
  return sum;
}

/// What a tree's leaf is must not depend on where the microbatch stands: its terms are summed
/// before anything is added to them.
void fold(accum::LoopOp loop, bool isTree) {
  Block& block = loop.getBlock();
  for (auto [accumulator, yielded] :
       llvm::zip_equal(loop.getAccumulators(), loop.getYieldedSums())) {
    auto root = yielded.getDefiningOp<ir::AddOp>();
    if (!root || !root->hasOneUse() || root->getBlock() != &block || !accumulator.hasOneUse())
      continue;
    SumTree tree(root);
    SmallVector<Value> terms = tree.terms;
    if (llvm::count(terms, accumulator) != 1 ||
        llvm::none_of(terms, [&](Value term) { return bool(foldable(term, block)); }))
      continue;
    llvm::erase(terms, accumulator);
    separateAccumulators(terms, block);
    OpBuilder builder(root);
    tree.replaceBy(
        isTree ? ir::TensorBuilder(builder, root).add(accumulator, sumInOrder(Value(), root, terms))
               : sumInOrder(accumulator, root, terms));
  }
}

struct FoldContractions : impl::FoldContractionsBase<FoldContractions> {
  void runOnOperation() override {
    FailureOr<Recipe> recipe = getRecipe(getOperation());
    if (failed(recipe))
      return signalPassFailure();
    const bool isTree = recipe->mesh.isTree();
    getOperation().walk([&](accum::LoopOp loop) {
      if (loop.getOrder() == accum::Order::Running)
        fold(loop, isTree);
    });
  }
};

} // namespace

} // namespace titan
