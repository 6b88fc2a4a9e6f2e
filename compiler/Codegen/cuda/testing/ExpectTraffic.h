// What a kernel may move, as the interpreter counts it.
#pragma once

#include "compiler/Codegen/cuda/testing/CudaCase.h"

namespace titan::codegen::cuda::testing {

inline constexpr int64_t sectorBytes = 32;

/// Every byte once, in no more sectors than it takes, but for a tenth.
void expectOnce(const ptx::Traffic& traffic, int64_t bytes);

/// What the command of a job says of the kernel (`Command::bytes`), within a twentieth.
void expectAsClaimed(const CudaCase& test);

} // namespace titan::codegen::cuda::testing
