// The order in which a reduction combines its terms: a function of the reduced value's extents, its
// type and the target, so that the kernel around it, the units and the threads never change a bit.
//
//   lane order (the innermost dimension of the reduced value is reduced): term x goes to lane
//     x mod 4*width of a partial sum over `laneChunk` terms; partial sums are added to the total in
//     order, outer reduced dimensions in turn; the lanes of the total are folded by halves.
//   column order (it is not): terms are added one after the other to a partial sum over
//     `columnChunk` terms of the innermost reduced dimension; partial sums are added to the total
//     in order.
//
// Two levels keep the error of long sums small: it grows with chunk + extent / chunk, not with the
// extent.
#pragma once

#include <cstdint>

namespace titan::codegen {

/// Terms of one partial sum. laneChunk is a multiple of every vector length.
inline constexpr int64_t laneChunk = 4096;
inline constexpr int64_t columnChunk = 64;

/// The smallest power of two that is at least `count`, between low and high (powers of two).
int64_t vectorLength(int64_t count, int64_t low, int64_t high);

} // namespace titan::codegen
