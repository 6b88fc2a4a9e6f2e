// What messages say of ranks: who, in which step, and who waited for it at what.
#pragma once

#include "runtime/collective/ControlBlock.h"

namespace titan {

/// "rank 1 (pid 4711)", or "rank 1 (pid 4711 on node7)" where ranks share no memory.
std::string whoIs(const ControlBlock& block, int64_t rank);
/// " in step 12"; nothing before the first step.
std::string inStep(const ControlBlock& block, int64_t rank);
/// "rank 0 waited at 'all_reduce of 0, 2'; ranks 2, 3 waited at 'agreement'", of those that sleep,
/// without `lost`; nothing where nobody does.
std::string whoWaits(const ControlBlock& block, int64_t lost);

} // namespace titan
