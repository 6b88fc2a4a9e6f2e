// The tile grid of a matrix product: fixed at compile time, because it decides bits.
#pragma once

#include <cstdint>

namespace titan::lower {

struct TileGrid {
  int64_t tileM, tileN;
};

/// The grid with the least estimated time for `batch` products of m x n x k with operands of
/// `elementBytes`.
///
/// A tile's time in nanoseconds is 2·tm·tn·k / rate + bytes of its operands' panels / 15 + 100:
/// arithmetic at one core's measured rate (250 flop/ns f32, 500 bf16), the library's packing of
/// both panels at 15 byte/ns, and the call (RATIONALE.md). The number of threads is unknown here
/// and must not matter: the estimate is 8 x the time on two threads + the time on eight. Tiles are
/// multiples of 16 in both directions, no grid leaves a last tile of a single row or column, and a
/// tile of a bf16 product that needs several panels along k has at most 2^19 elements.
TileGrid chooseTileGrid(int64_t batch, int64_t m, int64_t n, int64_t k, int64_t elementBytes);

} // namespace titan::lower
