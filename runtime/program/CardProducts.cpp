#include "runtime/program/CardProducts.h"

#include <limits>

namespace titan {

bool suitsCardLibrary(const Gemm& gemm) {
  constexpr int64_t longest = int64_t{1} << 22, most = std::numeric_limits<int32_t>::max();
  const bool known = gemm.a == gemm.b && (gemm.a == DType::F32 || gemm.a == DType::BF16) &&
                     (gemm.c == DType::F32 || gemm.c == gemm.a);
  return known && !gemm.relu && (gemm.c == DType::F32 || !gemm.accumulate) && gemm.k <= longest &&
         gemm.batch <= most;
}

bool suitsCardLibrary(const LibraryCall& call) {
  return call.routine == LibraryRoutine::Gemm && suitsCardLibrary(call.gemm);
}

} // namespace titan
