#include "compiler/Accumulate/Passes.h"
#include "compiler/Support/SumTree.h"
#include "dialects/Titan/TensorBuilder.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_FOLDCONTRACTIONS
#include "compiler/Accumulate/Passes.h.inc"

namespace {

/// Can `op` add its terms to an operand?
bool accumulates(Operation* op) { return isa_and_nonnull<ir::ContractOp, ir::EmbeddingGradOp>(op); }

MutableOperandRange accumulatorOf(Operation* op) {
  if (auto contract = dyn_cast<ir::ContractOp>(op))
    return contract.getAccMutable();
  return cast<ir::EmbeddingGradOp>(op).getAccMutable();
}

/// The op that computes `term`, if nothing but its sum uses it and it can add to an operand.
Operation* foldable(Value term, Block& block) {
  Operation* op = term.getDefiningOp();
  bool ownUse = term.use_empty() || term.hasOneUse();
  return accumulates(op) && ownUse && op->getBlock() == &block ? op : nullptr;
}

/// Takes what a foldable term of `terms` is already added to as a term of its own.
void separateAccumulators(SmallVectorImpl<Value>& terms, Block& block) {
  for (size_t i = 0; i < terms.size(); ++i) {
    Operation* op = foldable(terms[i], block);
    if (!op || accumulatorOf(op).empty())
      continue;
    terms.push_back(accumulatorOf(op)[0].get());
    accumulatorOf(op).clear();
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

/// The sum of `accumulator` and `terms`, each added where it is computed.
Value sumInOrder(Value accumulator, ir::AddOp root, ArrayRef<Value> terms) {
  Block& block = *root->getBlock();
  Value sum = accumulator;
  for (Value term : inOrder(terms, block)) {
    if (Operation* op = foldable(term, block)) {
      accumulatorOf(op).assign(sum);
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

void fold(accum::LoopOp loop) {
  Block& block = loop.getBlock();
  for (auto [accumulator, yielded] :
       llvm::zip_equal(loop.getAccumulators(), block.getTerminator()->getOpOperands())) {
    auto root = yielded.get().getDefiningOp<ir::AddOp>();
    if (!root || !root->hasOneUse() || root->getBlock() != &block || !accumulator.hasOneUse())
      continue;
    SumTree tree(root);
    SmallVector<Value> terms = tree.terms;
    if (llvm::count(terms, accumulator) != 1 ||
        llvm::none_of(terms, [&](Value term) { return foldable(term, block); }))
      continue;
    llvm::erase(terms, accumulator);
    separateAccumulators(terms, block);
    tree.replaceBy(sumInOrder(accumulator, root, terms));
  }
}

struct FoldContractions : impl::FoldContractionsBase<FoldContractions> {
  void runOnOperation() override {
    getOperation().walk([](accum::LoopOp loop) {
      if (loop.getOrder() == accum::Order::Running)
        fold(loop);
    });
  }
};

} // namespace

} // namespace titan
