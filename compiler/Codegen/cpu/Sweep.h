// Kernels that go down their rows once.
#pragma once

#include "compiler/Codegen/kernel/LoopNest.h"

namespace titan::codegen {

/// The dimension of a kernel whose column reductions one sweep down its rows can do, row by row,
/// in the order of ReductionOrder.h: all are over this dimension alone, are as long as a row, and
/// need one partial sum only.
std::optional<unsigned> sweepDim(const LoopNest& nest);

} // namespace titan::codegen
