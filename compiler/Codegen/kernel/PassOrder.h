// In which passes a kernel's reductions run, and what each pass may write.
#pragma once

#include "compiler/Codegen/kernel/LoopNest.h"

namespace titan::codegen {

/// The reductions of one pass.
using ReductionGroup = llvm::SmallVector<const Reduction*>;

/// Adds what `root` is computed from before the next reduction: ins, and reductions that it waits
/// for.
void collectSources(const LoopNest& nest, mlir::Value root, llvm::DenseSet<mlir::Value>& sources);

/// The reductions that `wanted` holds for, in the order of their passes. `bound` are the dimensions
/// that have a coordinate already.
llvm::SmallVector<ReductionGroup>
groupReductions(const LoopNest& nest, DimSet bound,
                llvm::function_ref<bool(const Reduction&)> wanted);

/// Those of `outs` that a pass over all of `group`'s points may write at once: nothing that is
/// evaluated later reads what they may lie on, or waits for the pass.
llvm::SmallVector<unsigned> outsWrittenWith(const LoopNest& nest, DimSet bound,
                                            const ReductionGroup& group,
                                            llvm::ArrayRef<unsigned> outs);

} // namespace titan::codegen
