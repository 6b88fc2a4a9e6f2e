// Computes chosen values again in the backward pass.
#pragma once

#include "compiler/Schedule/ChooseRecomputation.h"

namespace titan::schedule {

/// Clones the chain of every evicted storage before its first reader of the backward pass, and lets
/// all readers there read the clone; a chain starts at a `titan.barrier`. One remark a storage: its
/// module path, bytes and FLOP. `model` is of the step as it stands, and describes it no more
/// afterwards.
void rematerialize(const MemoryModel& model, const Recomputation& choice, bool withRemarks);

} // namespace titan::schedule
