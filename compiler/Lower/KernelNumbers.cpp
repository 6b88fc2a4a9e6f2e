#include "compiler/Lower/KernelNumbers.h"

#include "compiler/Support/KernelKey.h"

using namespace mlir;

namespace titan::lower {

unsigned KernelNumbers::of(kernel::FusedOp op) {
  auto [found, isNew] = numbers_.try_emplace(op);
  if (isNew) {
    KeyBuilder key;
    key.addKernel(op);
    auto [known, isFirst] = known_.try_emplace(key.str(), next_);
    next_ += isFirst;
    found->second = known->second;
  }
  return found->second;
}

} // namespace titan::lower
