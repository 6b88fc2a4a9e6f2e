// The sums of rows that a sort has put in order: tiles of rows by themselves, then what tiles cut.
//
// A block has a tile of sorted rows and some columns. It adds the rows of each index in order.
// Where all rows of an index are in the tile, the sum goes to the table. The sums of the tile's
// first and last index go to workspace where the tile cuts them, and a further launch adds those of
// an index in the order of tiles.
#pragma once

#include "compiler/Codegen/cuda/EmbeddingBuilder.h"

namespace titan::codegen::cuda {

/// Adds the entry points behind those of the sort.
void emitSums(LaunchSeries& launches, kernel::EmbeddingGradAttr routine);

} // namespace titan::codegen::cuda
