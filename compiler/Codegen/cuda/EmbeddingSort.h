// A stable radix sort of rows by the table's row that their index names.
//
// A pass sorts by 8 bits, in two launches. In the first, each block counts the digits of its rows.
// In the second it adds up what all blocks counted, which gives each digit of the block its first
// place, and puts its rows there. Within a block rows keep their order: a warp's lanes find by
// ballots how many before them have their digit.
#pragma once

#include "compiler/Codegen/cuda/EmbeddingBuilder.h"

namespace titan::codegen::cuda {

/// Passes that sort rows of a table of `entries`: one at least.
int64_t sortPasses(int64_t entries);

/// Where in the workspace pass number `pass` leaves the numbers of the rows: the number of an i32.
/// Behind both permutations are the counts.
int64_t orderAfter(kernel::EmbeddingGradAttr routine, int64_t pass);

/// Adds the entry points of all passes.
void emitSort(LaunchSeries& launches, kernel::EmbeddingGradAttr routine);

} // namespace titan::codegen::cuda
