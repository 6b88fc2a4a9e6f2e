#include "runtime/device/cpu/CpuLimits.h"

#include "runtime/device/cpu/GemmCeiling.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>

namespace titan {
namespace {

constexpr int64_t MiB = 1 << 20;
/// The largest third-level cache that a cluster of eight cores has: 32 MiB and 64 stacked on them.
constexpr int64_t mostThird = 96 * MiB;

/// Bytes of the first CPU's cache of that level; `otherwise` where the system does not say.
/// (sysconf gives what the whole socket has, of which a virtual machine sees a part.)
int64_t cacheBytes(int level, int64_t otherwise) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    int found = 0;
    int64_t size = 0;
    std::string type;
    char unit = 0;
    if (std::ifstream(folder + "level") >> found && found == level &&
        std::ifstream(folder + "type") >> type && type != "Instruction" &&
        std::ifstream(folder + "size") >> size >> unit && size > 0)
      return unit == 'M' ? size * MiB : unit == 'K' ? size << 10 : size;
  }
  return otherwise;
}

/// Bytes a second, read and written, of copying between two buffers of `bytes` together: the best
/// of several times. `block` bytes are copied at a time: of large blocks, memcpy goes past the
/// caches.
double copySpeed(int64_t bytes, int64_t block, ThreadPool& pool) {
  using Clock = std::chrono::steady_clock;
  constexpr int rounds = 7;
  constexpr int64_t leastMoved = 64 * MiB; // in one round: long against the clock
  // Half a page apart, beside whole pages: where a destination lies less than 64 bytes behind its
  // source modulo a page, as two neighbours of the heap do, AMD's `rep movsb` takes twenty times as
  // long (glibc bug 30994).
  constexpr int64_t page = 4096;
  const int64_t half = bytes / 2 / pool.threads() * pool.threads();
  const int64_t distance = (half + page - 1) / page * page + page / 2;
  std::vector<char> memory(static_cast<size_t>(distance + half), 1);
  const char* source = memory.data();
  char* destination = memory.data() + distance;
  const int64_t repeats = std::max<int64_t>(1, leastMoved / half);
  // Each thread copies its own part again and again: its caches hold what they can.
  auto copyPart = [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < repeats; ++i)
      for (int64_t at = begin; at < end; at += block)
        std::memcpy(destination + at, source + at, static_cast<size_t>(std::min(block, end - at)));
  };
  double best = 1e30;
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point start = Clock::now();
    pool.parallelFor(half, half / pool.threads(), copyPart);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return 2.0 * static_cast<double>(half) * static_cast<double>(repeats) / best;
}

} // namespace

MachineLimits measureCpuLimits(const std::optional<OneDnn>& oneDnn, ThreadPool& pool,
                               DType operands) {
  const int64_t second = cacheBytes(2, 1 * MiB) * pool.threads();
  // A virtual machine may name the caches of a whole socket (402 MiB was seen), of which its CPUs
  // hold a part; and four times as much is allocated to get past it.
  const int64_t third = std::max(
      std::min(cacheBytes(3, 32 * MiB), mostThird * ((pool.threads() + 7) / 8)), 2 * second);
  MachineLimits limits;
  limits.productFlops = measureGemmCeiling(oneDnn, pool, operands);
  // A part of a cache, so that it holds the working set beside everything else.
  constexpr int64_t small = 64 << 10;
  const int64_t large = std::max(4 * third, 128 * MiB);
  limits.copies = {{"L2", second, copySpeed(second / 2, small, pool)},
                   {"L3", third, copySpeed(third / 4, small, pool)},
                   {"memory", INT64_MAX, copySpeed(large, large, pool)}};
  return limits;
}

} // namespace titan
