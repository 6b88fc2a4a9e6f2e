#include "runtime/device/cpu/GemmCeiling.h"

#include <chrono>
#include <limits>
#include <numeric>
#include <vector>

namespace titan {

double measureGemmCeiling(const std::optional<OneDnn>& oneDnn, ThreadPool& pool, DType operands) {
  using Clock = std::chrono::steady_clock;
  if (!oneDnn)
    return 0;
  constexpr int64_t tile = 384;
  // The library's bf16 products reach their speed after the tenth (runtime/job/RATIONALE.md).
  constexpr int rounds = 64;
  Gemm gemm;
  gemm.m = tile * pool.threads(), gemm.n = gemm.k = tile;
  gemm.lda = gemm.ldb = gemm.ldc = tile;
  gemm.tileM = gemm.tileN = tile;
  gemm.a = gemm.b = operands;
  if (!oneDnn->supports(gemm))
    gemm.a = gemm.b = operands = DType::F32;
  constexpr char byte = 0x3c; // 0.0115 as f32 and as bf16
  std::vector<char> a(gemm.m * tile * byteSize(operands), byte),
      b(tile * tile * byteSize(operands), byte), c(gemm.m * tile * byteSize(gemm.c));
  char* matrices[] = {a.data(), b.data(), c.data()};
  // A tile's own time, not the region's: on a busy machine one thread may compute every tile.
  const auto tiles = static_cast<size_t>(gemm.units());
  std::vector<double> seconds(tiles);
  auto timeTiles = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Clock::time_point start = Clock::now();
      oneDnn->run(gemm, matrices, i, i + 1);
      seconds[static_cast<size_t>(i)] = std::chrono::duration<double>(Clock::now() - start).count();
    }
  };
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < rounds; ++i) {
    pool.parallelFor(gemm.units(), 1, timeTiles);
    best = std::min(best, std::reduce(seconds.begin(), seconds.end()) / static_cast<double>(tiles));
  }
  return 2.0 * static_cast<double>(gemm.m * gemm.n * gemm.k) / best;
}

} // namespace titan
