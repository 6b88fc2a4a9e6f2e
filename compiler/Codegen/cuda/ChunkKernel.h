// The schedule of kernels whose innermost dimension is independent: a thread owns 8 neighbouring
// elements of it at one point of the other parallel dimensions, and goes over what is reduced in
// order. Flat kernels, small transposing ones, and sums down columns.
#pragma once

#include "compiler/Codegen/cuda/BodyWriter.h"

namespace titan::codegen::cuda {

struct ChunkPlan {
  llvm::SmallVector<unsigned, 4> owned;   ///< parallel dimensions, the chunked one last
  llvm::SmallVector<unsigned, 4> reduced; ///< dimensions that each thread goes over
  int64_t chunks = 1;
  int64_t threads() const;
  int64_t blocks() const { return llvm::divideCeilSigned(chunks, threads()); }
};
/// None: the innermost dimension is reduced, or a reduction leaves reduced dimensions of others.
std::optional<ChunkPlan> planChunks(const LoopNest& nest);

class ChunkKernel : BodyWriter {
public:
  ChunkKernel(BodyEmitter& body, const ChunkPlan& plan) : BodyWriter(body), plan(plan) {}
  void emit();

private:
  void emitPoint();
  void emitReductions(const ReductionGroup& group, llvm::ArrayRef<unsigned> together);

  const ChunkPlan& plan;
};

} // namespace titan::codegen::cuda
