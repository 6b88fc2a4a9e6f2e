// Which values to compute twice so that a step fits.
#pragma once

#include "compiler/Schedule/MemoryModel.h"

namespace titan::schedule {

struct Recomputation {
  llvm::BitVector evicted; ///< one bit a storage of the model
  Timeline timeline;
  bool fits = false; ///< no step has more than the target live
};

/// Picks storages until at no step more than `target` bytes are live, or nothing helps any more.
/// Greedy by bytes over cost, as dynamic tensor rematerialisation evicts (Kirisame et al.,
/// arXiv:2006.09616), but on the whole step, which is known: what a choice gains is the fall of the
/// area above the target, measured with all of its consequences (chains that grow because their
/// sources are gone, sources that live longer). So chains of cheap ops go first, then attention,
/// then products, and with all of a block's values gone the block is recomputed from its input
/// (Chen et al., arXiv:1604.06174). Each value is computed again at most once a step (the setting
/// of Jain et al., arXiv:1910.02653). At last choices that turned out needless are taken back, the
/// most expensive first. Deterministic.
Recomputation chooseRecomputation(const MemoryModel& model, int64_t target);

} // namespace titan::schedule
