#include "compiler/Autodiff/DuplicateTable.h"
#include "compiler/Autodiff/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace titan::ir;

namespace titan {

#define GEN_PASS_DEF_COMBINEDUPLICATES
#include "compiler/Autodiff/Passes.h.inc"

namespace {

bool isCandidate(Operation* op) {
  return isPure(op) && op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>();
}

void combine(Block& block) {
  autodiff::DuplicateTable seen;
  for (Operation& op : llvm::make_early_inc_range(block)) {
    for (Region& region : op.getRegions())
      for (Block& inner : region)
        combine(inner);
    if (!isCandidate(&op))
      continue;
    Operation* first = seen.firstLike(&op, autodiff::DuplicateTable::hashOf(&op));
    if (first == &op)
      continue;
    setPath(first, joinPaths(getPath(first), getPath(&op)));
    op.replaceAllUsesWith(first->getResults());
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
