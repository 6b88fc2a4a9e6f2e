// Which CPUs each rank of a host runs on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace titan::launch {

/// The numbers of the CPUs this process may use: of its affinity mask, as many as its control
/// group's quota amounts to.
std::vector<int> cpuNumbers();

/// One set a rank: neighbours, evenly, and disjoint. With more ranks than CPUs each has one CPU,
/// and shares it with its neighbours.
std::vector<std::vector<int>> cutCpus(std::span<const int> cpus, int64_t ranks);

} // namespace titan::launch
