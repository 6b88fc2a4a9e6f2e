#include "compiler/Lower/TileGrid.h"

#include <algorithm>
#include <limits>

namespace titan::lower {

namespace {

constexpr int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

double tileTime(const MachineModel& machine, int64_t m, int64_t n, int64_t k,
                int64_t elementBytes) {
  const double flops = 2.0 * m * n * k, panels = static_cast<double>(elementBytes) * k * (m + n);
  const double rate = elementBytes == 2 ? machine.gridFlopsPerNsBf16 : machine.gridFlopsPerNsF32;
  return flops / rate + panels / machine.gridPackingBytesPerNs + machine.gridCallNs;
}

/// The tile extent for `count` tiles along `extent`, or 0 where it leaves a sliver.
int64_t tileExtent(int64_t granule, int64_t extent, int64_t count) {
  const int64_t tile = std::min(extent, ceilDiv(ceilDiv(extent, count), granule) * granule);
  return extent > 1 && extent % tile == 1 ? 0 : tile;
}

} // namespace

TileGrid chooseTileGrid(const MachineModel& machine, int64_t batch, int64_t m, int64_t n, int64_t k,
                        int64_t elementBytes) {
  const int64_t granule = machine.gridGranule, mostTilesPerSide = machine.gridTilesPerSide;
  // Between two panels along k the f32 sums of a product that is rounded to bf16 lie on the stack
  // of the thread.
  const bool keepsSums = elementBytes == 2 && k > machine.gridPanelDepth;
  auto smallest = [&](int64_t extent) {
    return std::min(extent, ceilDiv(ceilDiv(extent, mostTilesPerSide), granule) * granule);
  };
  TileGrid best = {smallest(m), smallest(n)};
  double bestTime = std::numeric_limits<double>::infinity();
  int64_t previousM = 0;
  for (int64_t i = 1; i <= std::min(mostTilesPerSide, ceilDiv(m, granule)); ++i) {
    const int64_t tileM = tileExtent(granule, m, i);
    if (tileM == 0 || tileM == previousM)
      continue;
    previousM = tileM;
    int64_t previousN = 0;
    for (int64_t j = 1; j <= std::min(mostTilesPerSide, ceilDiv(n, granule)); ++j) {
      const int64_t tileN = tileExtent(granule, n, j);
      if (tileN == 0 || tileN == previousN)
        continue;
      previousN = tileN;
      if (keepsSums && tileM * tileN > machine.gridHeldSums)
        continue;
      const int64_t tiles = batch * ceilDiv(m, tileM) * ceilDiv(n, tileN);
      const double time = tileTime(machine, tileM, tileN, k, elementBytes);
      const double total = 8 * time * ceilDiv(tiles, 2) + time * ceilDiv(tiles, 8);
      if (total < bestTime) {
        bestTime = total;
        best = {tileM, tileN};
      }
    }
  }
  return best;
}

} // namespace titan::lower
