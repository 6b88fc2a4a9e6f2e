// What a kernel costs: for the plan's figures, and for the number of units that is worth a thread.
#pragma once

#include "compiler/Codegen/cpu/LoopNest.h"
#include "runtime/program/Program.h"

namespace titan::codegen {

struct Cost {
  int64_t flops = 0;      ///< floating-point operations, a function counted as one
  int64_t bytes = 0;      ///< read and written, each operand once
  double nanoseconds = 0; ///< estimate of one thread
};

Cost costOf(const LoopNest& nest);
Cost costOf(const Gemm& gemm);
/// A routine other than a matrix product.
Cost costOf(kernel::CallOp op);
/// Scores that a causal limit excludes are not computed and not counted.
Cost costOf(kernel::AttentionAttr attention);

/// Is the generated kernel the faster one for this product? Decided from its extents by committed
/// measurements (RATIONALE.md, "Which products go to the library"), never by timing.
bool prefersGenerated(const Gemm& gemm);

/// Units that a thread should get at least: about two microseconds of work, against a quarter of
/// one that a second thread costs.
int64_t grainOf(const Cost& cost, int64_t units);

} // namespace titan::codegen
