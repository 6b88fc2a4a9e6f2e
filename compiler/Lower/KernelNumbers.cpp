#include "compiler/Lower/KernelNumbers.h"

#include "compiler/Support/KernelKey.h"

using namespace mlir;

namespace titan::lower {

unsigned KernelNumbers::of(kernel::FusedOp op) {
  auto [found, isNew] = numbers_.try_emplace(op);
  if (isNew) {
    KeyBuilder key;
    key.addKernel(op);
    found->second = known_.try_emplace(key.take(), known_.size()).first->second;
  }
  return found->second;
}

} // namespace titan::lower
