// The tile grid of a matrix product: fixed at compile time, because it decides bits.
#pragma once

#include "compiler/Support/MachineModel.h"

namespace titan::lower {

struct TileGrid {
  int64_t tileM, tileN;
};

/// The grid with the least estimated time for `batch` products of m x n x k with operands of
/// `elementBytes`.
///
/// A tile's time is 2·tm·tn·k / rate + bytes of its operands' panels / packing rate + call:
/// arithmetic at one core's rate for the operands' type, the packing of both panels, and the call
/// (RATIONALE.md), all of them fields `grid...` of the machine model. The number of threads is
/// unknown here and must not matter: the estimate is 8 x the time on two threads + the time on
/// eight. Tiles are multiples of the granule in both directions, no grid leaves a last tile of a
/// single row or column, and a tile of a bf16 product that needs several panels along k has at most
/// `gridHeldSums` elements.
TileGrid chooseTileGrid(const MachineModel& machine, int64_t batch, int64_t m, int64_t n, int64_t k,
                        int64_t elementBytes);

} // namespace titan::lower
