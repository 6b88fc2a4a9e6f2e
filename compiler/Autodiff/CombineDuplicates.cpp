#include "compiler/Autodiff/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace titan::ir;

namespace titan {

#define GEN_PASS_DEF_COMBINEDUPLICATES
#include "compiler/Autodiff/Passes.h.inc"

namespace {

/// Attributes that say where an op comes from, not what it computes.
DictionaryAttr meaningOf(Operation* op) {
  NamedAttrList attributes(op->getAttrDictionary());
  attributes.erase("path");
  attributes.erase("phase");
  return attributes.getDictionary(op->getContext());
}

bool isCandidate(Operation* op) {
  return isPure(op) && op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>();
}

void combine(Block& block) {
  // Buckets of ops by a hash; within a bucket in program order.
  llvm::DenseMap<unsigned, SmallVector<std::pair<Operation*, DictionaryAttr>>> seen;
  for (Operation& op : llvm::make_early_inc_range(block)) {
    for (Region& region : op.getRegions())
      for (Block& inner : region)
        combine(inner);
    if (!isCandidate(&op))
      continue;
    DictionaryAttr meaning = meaningOf(&op);
    SmallVector<Value> operands(op.getOperands());
    unsigned hash = llvm::hash_combine(op.getName(), meaning,
                                       llvm::hash_combine_range(operands.begin(), operands.end()));
    auto& bucket = seen[hash];
    auto equal = llvm::find_if(bucket, [&](auto& entry) {
      Operation* other = entry.first;
      return other->getName() == op.getName() && entry.second == meaning &&
             llvm::equal(other->getOperands(), op.getOperands()) &&
             other->getResultTypes() == op.getResultTypes();
    });
    if (equal == bucket.end()) {
      bucket.emplace_back(&op, meaning);
      continue;
    }
    setPath(equal->first, joinPaths(getPath(equal->first), getPath(&op)));
    op.replaceAllUsesWith(equal->first->getResults());
    op.erase();
  }
}

struct CombineDuplicatesPass : impl::CombineDuplicatesBase<CombineDuplicatesPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Block& block : function.getBody())
        combine(block);
  }
};

} // namespace
} // namespace titan
