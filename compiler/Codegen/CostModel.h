// What a kernel costs: for the plan's figures, and for the number of units that is worth a thread.
#pragma once

#include "compiler/Codegen/kernel/LoopNest.h"
#include "compiler/Support/MachineModel.h"
#include "runtime/program/Program.h"

namespace titan::codegen {

struct Cost {
  int64_t flops = 0;      ///< floating-point operations, a function counted as one
  int64_t bytes = 0;      ///< read and written, each operand once
  double nanoseconds = 0; ///< estimate of one thread
};

Cost costOf(const LoopNest& nest, const MachineModel& machine);
Cost costOf(const Gemm& gemm, const MachineModel& machine);
/// Scores that a causal limit excludes are not computed and not counted.
Cost costOfAttention(kernel::CallOp call, const MachineModel& machine);
Cost costOfEmbedding(kernel::CallOp call, const MachineModel& machine);
Cost costOfEmbeddingGrad(kernel::CallOp call, const MachineModel& machine);
Cost costOfRecurrence(kernel::CallOp call, const MachineModel& machine);
Cost costOfScatter(kernel::CallOp call, const MachineModel& machine);
Cost costOfTopK(kernel::CallOp call, const MachineModel& machine);

/// Units that a thread should get at least: work that is worth waking it (`threadNs`).
int64_t grainOf(const Cost& cost, int64_t units, const MachineModel& machine);

} // namespace titan::codegen
