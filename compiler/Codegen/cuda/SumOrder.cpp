#include "compiler/Codegen/cuda/SumOrder.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <bit>

namespace titan::codegen::cuda {

int64_t chunksOf(llvm::ArrayRef<int64_t> extents) {
  int64_t chunks = llvm::divideCeilSigned(extents.back(), chunkLength);
  for (int64_t extent : extents.drop_back())
    chunks *= extent;
  return chunks;
}

int64_t slotsOf(int64_t chunks) {
  constexpr int64_t warp = 32, mostWarps = 16;
  if (chunks <= warp)
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(chunks)));
  return warp * std::min(mostWarps, llvm::divideCeilSigned(chunks, warp));
}

} // namespace titan::codegen::cuda
