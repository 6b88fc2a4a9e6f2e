// The generated product of two bf16 matrices on tensor cores.
//
// A block has a tile of C, each of its warps a part of it. It goes along k in steps of 32 terms,
// whose parts of A and B are copied to shared memory some steps ahead. An element of C is one chain
// of mma along k in f32.
#pragma once

#include "compiler/Codegen/cuda/KernelModule.h"
#include "compiler/Codegen/cuda/ThreadBuilder.h"
#include "dialects/Kernel/Kernel.h"

namespace titan::codegen::cuda {

/// How the blocks, and the warps of a block, divide C.
struct TensorGemmPlan {
  int64_t tileM, tileN; ///< of a block: powers of two from 16 to 128
  int64_t warpM, warpN; ///< of a warp
  int64_t stages;       ///< steps that lie in shared memory

  int64_t threads() const { return tileM / warpM * (tileN / warpN) * warpSize; }
  int64_t blocks(kernel::GemmAttr gemm) const;
};

/// Whether `call` multiplies bf16 by bf16.
bool isTensorGemm(kernel::CallOp call);
TensorGemmPlan planTensorGemm(kernel::GemmAttr gemm);

/// Writes the body of the newest entry point, whose operands are those of `call`.
void emitTensorGemm(ThreadBuilder& builder, KernelModule& kernels, kernel::CallOp call,
                    mlir::ValueRange operands, const TensorGemmPlan& plan);

} // namespace titan::codegen::cuda
