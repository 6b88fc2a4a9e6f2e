#include "compiler/Support/SumTree.h"

using namespace mlir;

namespace titan {

SumTree::SumTree(ir::AddOp root) : root(root) {
  SmallVector<Value> stack = {root};
  while (!stack.empty()) {
    Value value = stack.pop_back_val();
    auto add = value.getDefiningOp<ir::AddOp>();
    if (!add || (add != root && (!add->hasOneUse() || add->getBlock() != root->getBlock()))) {
      terms.push_back(value);
      continue;
    }
    additions.push_back(add);
    stack.push_back(add.getRhs());
    stack.push_back(add.getLhs());
  }
}

bool SumTree::isRoot(ir::AddOp add) {
  if (!add->hasOneUse())
    return true;
  Operation* user = *add->user_begin();
  return !isa<ir::AddOp>(user) || user->getBlock() != add->getBlock();
}

void SumTree::replaceBy(Value value) {
  root.getResult().replaceAllUsesWith(value);
  for (ir::AddOp add : additions)
    add.erase();
}

} // namespace titan
