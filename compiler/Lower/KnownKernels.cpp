#include "compiler/Lower/KnownKernels.h"

#include "compiler/Support/KernelKey.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace titan::lower {

unsigned KnownKernels::numberOf(kernel::FusedOp op) {
  auto [found, isNew] = numbers_.try_emplace(op);
  if (isNew) {
    KeyBuilder key;
    key.addKernel(op);
    auto [known, isFirst] = keys_.try_emplace(key.str(), known_.size());
    if (isFirst)
      known_.emplace_back();
    found->second = known->second;
  }
  return found->second;
}

Block& KnownKernels::bodyOf(kernel::FusedOp op) {
  return op.getBody().empty() ? known_[numberOf(op)].body.front() : op.getBlock();
}

const KernelFacts& KnownKernels::factsOf(kernel::FusedOp op) {
  std::optional<KernelFacts>& facts = known_[numberOf(op)].facts;
  if (!facts)
    facts = lower::factsOf(op, bodyOf(op));
  return *facts;
}

unsigned KnownKernels::addNew(kernel::FusedOp op) {
  const unsigned number = known_.size();
  IRMapping mapping;
  op.getBody().cloneInto(&known_.emplace_back().body, mapping);
  return numbers_[op] = number;
}

void KnownKernels::fill(kernel::FusedOp op) {
  if (!op.getBody().empty())
    return;
  IRMapping mapping;
  known_[numberOf(op)].body.cloneInto(&op.getBody(), mapping);
}

} // namespace titan::lower
