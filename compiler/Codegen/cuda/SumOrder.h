// The order in which a reduction combines its terms on a card: a function of the reduced extents
// alone, so that neither the kernel around it, nor storage types, nor the grid change a bit.
//
//   row order (the innermost dimension of the space is reduced): the reduced dimensions are read
//     row-major in chunks of `chunkLength` terms of the innermost one, whose last chunk may be
//     shorter. Chunk q goes to slot q mod S, term i of it to partial sum i of the slot, in rising
//     q; S = slotsOf(chunks). Then the partial sums of a slot meet by halves, the slots of a warp
//     by xor-shuffle from the widest, and the warps likewise: missing ones, up to a power of two,
//     have the identity.
//   column order (it is not): one sum, in rising order of the reduced dimensions.
//   tall column order (the same, with `tallColumn` rows or more, in kernels of sums alone): row r
//     goes to slot r mod `columnSlots`, in rising r. Then the slots' sums are added in rising order
//     to that of slot 0.
//
// Every sum starts from its kind's identity.
#pragma once

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>

namespace titan::codegen::cuda {

/// Elements of the innermost dimension that a thread owns, whatever their type.
inline constexpr int64_t chunkLength = 8;

/// Rows of a tall column: a thread that went down all of them would wait for memory most of the
/// time. Slots that share them.
inline constexpr int64_t tallColumn = 256, columnSlots = 32;

/// Chunks of a row with these reduced extents, outermost first.
int64_t chunksOf(llvm::ArrayRef<int64_t> extents);

/// Threads of a row: the smallest power of two that covers the chunks, up to a warp; above that a
/// warp for each 32 chunks, up to 16 warps. With more a thread has too few registers for sums of
/// columns, and a multiprocessor no second row to compute while one is read.
int64_t slotsOf(int64_t chunks);

} // namespace titan::codegen::cuda
