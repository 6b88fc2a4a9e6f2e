#include "compiler/Shard/AutoSync.h"

#include "runtime/program/Strategy.h"

namespace titan {

static const SyncRecipe onceAStep{"deferred", {}};
static const SyncRecipe immediateOnShard{"", {{"replicate", "deferred"}, {"shard", "immediate"}}};

SyncRecipe autoSync(const MeshRecipe& mesh) {
  return mesh.strategy == "zero2" && mesh.syncEvery == 0 ? immediateOnShard : onceAStep;
}

std::optional<SyncRecipe> leanerSync(const Recipe& recipe) {
  const MeshRecipe& mesh = recipe.mesh;
  const StrategyRow* row = findStrategyRow(mesh.strategy, "shard");
  const bool isOpen = mesh.sync.all == "auto" && autoSync(mesh) == onceAStep &&
                      mesh.syncEvery == 0 && recipe.dataRanks() > 1 &&
                      recipe.localMicrobatches() > 1;
  if (!isOpen || !row || row->gradients != Share::Part)
    return std::nullopt;
  return immediateOnShard;
}

} // namespace titan
