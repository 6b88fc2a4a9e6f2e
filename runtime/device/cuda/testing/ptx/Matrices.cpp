// ldmatrix and mma: what all lanes of a warp do together with matrices.
//
// Fragments, from the PTX ISA ("Matrix fragments for mma.m16n8k16", "ldmatrix"): lane l has row
// l / 4 of a matrix of 8 x 8, and in it columns 2 (l % 4) and the next, the first in the low half.
#include "runtime/device/cuda/testing/ptx/Bfloat.h"
#include "runtime/device/cuda/testing/ptx/Request.h"

#include <cmath>
#include <cstring>

namespace titan::ptx {
namespace {

constexpr int side = 8;                           ///< of a matrix of ldmatrix
constexpr int rows = 16, columns = 8, depth = 16; ///< of an mma
constexpr Mask wholeWarp = ~Mask{0};

constexpr int cells = side * side;

// Loops over neighbours, which the compiler makes vectors of.

/// out = in transposed: its index turned by three bits of six, one in each round.
inline __attribute__((always_inline)) void transpose(const uint16_t* in, uint16_t* out) {
  alignas(64) std::array<uint16_t, cells> first, second;
  auto turn = [](const uint16_t* from, uint16_t* to) {
    for (int i = 0; i < cells / 2; ++i) {
      to[2 * i] = from[i];
      to[2 * i + 1] = from[cells / 2 + i];
    }
  };
  turn(in, first.data());
  turn(first.data(), second.data());
  turn(second.data(), out);
}

/// Sums of rows and columns; those of a row are neighbours.
using Sums = std::array<float, rows * columns>;
/// Numbers of a factor: of the left one the terms of a row are neighbours, of the right one the
/// columns of a term.
using Left = std::array<float, rows * depth>;
using Right = std::array<float, depth * columns>;

/// Adds products in rising k, each exact in the sum's rounding: a chain of fma. Chains of four rows
/// take turns.
inline __attribute__((always_inline)) void addProducts(const Left& a, const Right& b, Sums& sums) {
  constexpr int together = 4 * columns;
  for (int first = 0; first < rows; first += 4) {
    std::array<float, together> held;
    std::memcpy(held.data(), &sums[first * columns], sizeof(held));
    for (int k = 0; k < depth; ++k)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < columns; ++j)
          held[i * columns + j] =
              __builtin_fmaf(a[(first + i) * depth + k], b[k * columns + j], held[i * columns + j]);
    std::memcpy(&sums[first * columns], held.data(), sizeof(held));
  }
}

/// One mma: the operands' columns in `file` begin at `at`.
inline __attribute__((always_inline)) void multiplyIn(char* file, const uint32_t* at) {
  constexpr int results = 0, left = 4, right = 8, sums = 10;
  alignas(64) Left a;
  alignas(64) Right b;
  alignas(64) Sums c;
  // A register of a factor is 8 lines of 8 elements, one behind the other.
  for (int reg = 0; reg < 4; ++reg) {
    const auto* halves = reinterpret_cast<const uint16_t*>(file + at[left + reg]);
    float* to = &a[reg % 2 * side * depth + reg / 2 * side];
    for (int line = 0; line < side; ++line)
      for (int k = 0; k < side; ++k)
        to[line * depth + k] = widened(halves[line * side + k]);
  }
  for (int reg = 0; reg < 2; ++reg) {
    alignas(64) std::array<uint16_t, cells> turned;
    transpose(reinterpret_cast<const uint16_t*>(file + at[right + reg]), turned.data());
    for (int i = 0; i < cells; ++i)
      b[reg * cells + i] = widened(turned[i]);
  }
  // Two registers of sums are 8 lines of 4 pairs.
  for (int half = 0; half < 2; ++half) {
    const auto* even = reinterpret_cast<const float*>(file + at[sums + 2 * half]);
    const auto* odd = reinterpret_cast<const float*>(file + at[sums + 2 * half + 1]);
    for (int lane = 0; lane < warpSize; ++lane) {
      c[half * cells + 2 * lane] = even[lane];
      c[half * cells + 2 * lane + 1] = odd[lane];
    }
  }
  addProducts(a, b, c);
  for (int half = 0; half < 2; ++half) {
    auto* even = reinterpret_cast<uint32_t*>(file + at[results + 2 * half]);
    auto* odd = reinterpret_cast<uint32_t*>(file + at[results + 2 * half + 1]);
    for (int lane = 0; lane < warpSize; ++lane) {
      even[lane] = canonical(c[half * cells + 2 * lane]);
      odd[lane] = canonical(c[half * cells + 2 * lane + 1]);
    }
  }
}

using Multiplier = void (*)(char* file, const uint32_t* at);

void multiplyAnywhere(char* file, const uint32_t* at) { multiplyIn(file, at); }
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void multiplyWide(char* file, const uint32_t* at) {
  multiplyIn(file, at);
}
#endif

Multiplier chooseMultiplier() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return &multiplyWide;
#endif
  return &multiplyAnywhere;
}

} // namespace

bool loadMatrix(Machine& machine, Warp& warp, const Instruction& instruction) {
  const int count = instruction.elements;
  const Mask addressing = count == 4 ? wholeWarp : (Mask{1} << side * count) - 1;
  constexpr int64_t rowBytes = 16;
  Request request(machine, warp, instruction, addressing, true, rowBytes);
  if (!request.locate(instruction.address, Space::Shared) || !request.insideShared() ||
      !request.readShared(true))
    return false;
  request.countShared(machine.counters.sharedLoads);
  for (int matrix = 0; matrix < count; ++matrix) {
    // A line of 8 elements is four lanes' words: in order the lines are the result.
    alignas(64) std::array<uint16_t, cells> held, turned;
    for (int row = 0; row < side; ++row)
      std::memcpy(&held[row * side], machine.shared->at(request.sharedOffset(matrix * side + row)),
                  rowBytes);
    if (instruction.transposes)
      transpose(held.data(), turned.data());
    std::memcpy(warp.file + instruction.at[matrix], instruction.transposes ? &turned : &held,
                sizeof(held));
  }
  return true;
}

void multiply(Warp& warp, const Instruction& instruction) {
  static const Multiplier multiplier = chooseMultiplier();
  multiplier(warp.file, instruction.at.data());
}

} // namespace titan::ptx
