#include "runtime/job/GemmCeiling.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace titan {

double measureGemmCeiling(const std::optional<OneDnn>& oneDnn, ThreadPool& pool) {
  using Clock = std::chrono::steady_clock;
  if (!oneDnn)
    return 0;
  constexpr int64_t tile = 384;
  constexpr int rounds = 8;
  Gemm gemm;
  gemm.m = tile * pool.threads(), gemm.n = gemm.k = tile;
  gemm.lda = gemm.ldb = gemm.ldc = tile;
  gemm.tileM = gemm.tileN = tile;
  std::vector<float> a(gemm.m * tile, 1.0f), b(tile * tile, 1.0f), c(gemm.m * tile);
  char* operands[] = {reinterpret_cast<char*>(a.data()), reinterpret_cast<char*>(b.data()),
                      reinterpret_cast<char*>(c.data())};
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const Clock::time_point start = Clock::now();
    pool.parallelFor(gemm.units(), 1,
                     [&](int64_t begin, int64_t end) { oneDnn->run(gemm, operands, begin, end); });
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return 2.0 * static_cast<double>(gemm.m * gemm.n * gemm.k) / best;
}

} // namespace titan
