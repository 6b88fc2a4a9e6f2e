#include "runtime/launch/Cpus.h"

#include "runtime/host/ThreadPool.h"

#include <algorithm>

#include <sched.h>

namespace titan::launch {

std::vector<int> cpuNumbers() {
  std::vector<int> numbers;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set))
        numbers.push_back(cpu);
  const auto allowed = static_cast<size_t>(allowedCpus());
  if (numbers.size() > allowed)
    numbers.resize(allowed);
  return numbers;
}

std::vector<std::vector<int>> cutCpus(std::span<const int> cpus, int64_t ranks) {
  const auto count = static_cast<int64_t>(cpus.size());
  std::vector<std::vector<int>> sets(static_cast<size_t>(ranks));
  if (count == 0)
    return sets;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const int64_t begin = rank * count / ranks;
    const int64_t end = std::max(begin + 1, (rank + 1) * count / ranks);
    sets[static_cast<size_t>(rank)].assign(cpus.begin() + begin, cpus.begin() + end);
  }
  return sets;
}

} // namespace titan::launch
