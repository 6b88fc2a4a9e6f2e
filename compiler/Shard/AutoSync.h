// What mesh.sync = "auto" means.
#pragma once

#include "runtime/program/Recipe.h"

#include <optional>

namespace titan {

/// When ranks sum gradients by the strategy of `mesh`, if nothing else is asked for: once a step,
/// but under zero2 over `shard` with each microbatch, as long as `sync_every` says nothing.
SyncRecipe autoSync(const MeshRecipe& mesh);

/// What takes less memory where `auto` became autoSync(), as far as the recipe leaves it open: with
/// each microbatch over `shard`, if the strategy cuts the sums there. Nothing where there is no
/// such choice: under ddp, with `sync` or `sync_every` given, with one microbatch a rank.
std::optional<SyncRecipe> leanerSync(const Recipe& recipe);

} // namespace titan
