#include "compiler/Shard/Passes.h"

using namespace mlir;

namespace titan {

void addShardPasses(OpPassManager& passes) {
  // On one rank every placement is the whole tensor: there is nothing to propagate and no
  // collective to insert.
  passes.addPass(createVerifyShard());
}

} // namespace titan
