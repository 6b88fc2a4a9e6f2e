// Counter-based random numbers: Philox4x32-7 (Salmon et al., "Parallel random numbers:
// as easy as 1, 2, 3", SC'11). A draw is a pure function of (seed, stream, step, global element
// index): there is no generator state to save, and the mesh, the thread count and the microbatching
// do not enter.
//
//   key     = XXH3-64 of the 16 bytes (seed, stream), little-endian; low word first
//   counter = (block, 64 bits; step, 64 bits), low words first
//   halves  : element 8*block + j is decided by 16-bit half j of 0..7, low half of word 0 first
//   words   : element 4*block + j takes 32-bit word j
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace titan {

using PhiloxBlock = std::array<uint32_t, 4>;

PhiloxBlock philox4x32_7(uint64_t key, uint64_t block, uint64_t step);
uint64_t randomKey(uint64_t seed, uint64_t stream);
/// Stream of the `ordinal`-th random op of a module path: XXH3-64 of "path#ordinal".
uint64_t randomStream(std::string_view path, uint64_t ordinal);
/// round((1 - p) * 65536): an element is kept if its half is below it.
uint32_t keepThreshold(double dropProbability);
bool dropoutKeeps(uint64_t key, uint64_t step, uint64_t element, uint32_t threshold);
/// Uniform in [0, 1): the top 24 bits of the element's word / 2^24.
float uniformDraw(uint64_t key, uint64_t step, uint64_t element);
/// Standard normal: Box-Muller over the element's pair of words (elements 2i and 2i+1 share them).
double normalNumber(uint64_t key, uint64_t step, uint64_t element);
/// The same, rounded once.
float normalDraw(uint64_t key, uint64_t step, uint64_t element);
/// The draws of the elements from `first` on, one for each of `values`: those that share a block of
/// words, or a pair of them, are made of it at once.
void uniformDraws(uint64_t key, uint64_t step, uint64_t first, std::span<float> values);
void normalDraws(uint64_t key, uint64_t step, uint64_t first, std::span<float> values);

} // namespace titan
