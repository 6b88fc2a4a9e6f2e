#include "compiler/Shard/Passes.h"

using namespace mlir;

namespace titan {

void addShardPasses(OpPassManager& passes) {
  // First, because ranks divide the model's work from here on, and what a rank computes that others
  // compute, too, is no more of it.
  passes.addPass(createCountFlops());
  // On one rank every placement is the whole tensor: there is nothing to propagate and no
  // collective to insert.
  // Last, because a term that has gone into its accumulator can no longer be summed over ranks by
  // itself.
  passes.addPass(createFoldContractions());
  passes.addPass(createVerifyShard());
}

} // namespace titan
