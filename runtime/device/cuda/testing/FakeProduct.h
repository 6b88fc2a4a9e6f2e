// What a product of the tests' cuBLASLt computes, on the memory of the tests' card. Column-major:
// D = alpha op(A) op(B) + beta C, then the bias, one element a row.
#pragma once

#include "runtime/device/cuda/LtApi.h"
#include "runtime/device/cuda/testing/ptx/Ptx.h"

namespace titan::cuda::testing {

struct FakeLayout {
  cudaDataType_t type = CUDA_R_32F;
  int64_t rows = 0, columns = 0, leading = 0;
  int32_t batch = 1;
  int64_t stride = 0;

  int64_t elementBytes() const { return type == CUDA_R_16BF ? 2 : 4; }
};

struct FakeProduct {
  FakeLayout a, b, d;
  bool transposeA = false, transposeB = false;
  bool accumulate = false; ///< beta is 1, else 0; C is D
  CUdeviceptr aAddress = 0, bAddress = 0, dAddress = 0, biasAddress = 0;
  CUdeviceptr workspace = 0;
  int64_t workspaceBytes = 0; ///< that the algorithm uses
  /// K is cut in so many parts; each is summed in order, without fused multiply-adds, and then the
  /// parts are.
  int parts = 1;
  bool misrounds = false; ///< sums are rounded before the bias, accumulation and last rounding
  bool coarse = false;    ///< operands of f32 are rounded to tf32
  bool flips = false;     ///< the last bit of the first element
  bool careless = false;  ///< the workspace's first byte decides that bit

  /// RunFailed, saying what: a place outside of an allocation, or bytes that nobody wrote.
  Status run(ptx::Memory& memory) const;
};

} // namespace titan::cuda::testing
