#include "compiler/Shard/Passes.h"

using namespace mlir;

namespace titan {

void addShardPasses(OpPassManager& passes) {
  // First, because ranks divide the model's work from here on, and what a rank computes that others
  // compute, too, is no more of it.
  passes.addPass(createCountFlops());
  // While there is one loop over the microbatches of the job: a sum over ranks has its place behind
  // a loop that they divide.
  passes.addPass(createNestLoops());
  // What the recipe divides, then what follows from it, as attributes: nothing is local yet, and
  // every value still has its meaning. On one rank these change nothing.
  passes.addPass(createSeedPlacements());
  // Between them, because the order of a sum decides how often ranks exchange it.
  passes.addPass(createGroupTerms());
  passes.addPass(createPropagatePlacements());
  // Now all at once: the loop runs a rank's microbatches, and what is a term becomes a sum.
  passes.addPass(createPartition());
  // Last, because a term that has gone into its accumulator can no longer be summed over ranks by
  // itself.
  passes.addPass(createFoldContractions());
  passes.addPass(createVerifyShard());
}

} // namespace titan
