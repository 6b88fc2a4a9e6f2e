// ldmatrix and mma: what all lanes of a warp do together with matrices.
//
// Fragments, from the PTX ISA ("Matrix fragments for mma.m16n8k16", "ldmatrix"): lane l has row
// l / 4 of a matrix of 8 x 8, and in it columns 2 (l % 4) and the next, the first in the low half.
#include "runtime/device/cuda/testing/ptx/Nan.h"
#include "runtime/device/cuda/testing/ptx/Request.h"

#include <cmath>
#include <cstring>

namespace titan::ptx {
namespace {

constexpr int side = 8;                           ///< of a matrix of ldmatrix
constexpr int rows = 16, columns = 8, depth = 16; ///< of an mma
constexpr Mask wholeWarp = ~Mask{0};

float widen(uint32_t bits) { return std::bit_cast<float>(bits << 16); }

using Left = std::array<std::array<float, depth>, rows>;
using Right = std::array<std::array<float, columns>, depth>;
using Sums = std::array<std::array<float, columns>, rows>;

/// Adds products in rising k, each exact in the sum's rounding: a chain of fma.
inline __attribute__((always_inline)) void addProducts(const Left& a, const Right& b, Sums& sums) {
  for (int i = 0; i < rows; ++i) {
    std::array<float, columns> row = sums[i];
    for (int k = 0; k < depth; ++k)
      for (int j = 0; j < columns; ++j)
        row[j] = __builtin_fmaf(a[i][k], b[k][j], row[j]);
    sums[i] = row;
  }
}

void addAnywhere(const Left& a, const Right& b, Sums& sums) { addProducts(a, b, sums); }
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void addWide(const Left& a, const Right& b, Sums& sums) {
  addProducts(a, b, sums);
}
#endif

using Adder = void (*)(const Left&, const Right&, Sums&);

Adder chooseAdder() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return &addWide;
#endif
  return &addAnywhere;
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
    std::array<std::array<uint16_t, side>, side> held;
    for (int row = 0; row < side; ++row)
      std::memcpy(held[row].data(), machine.shared->at(request.sharedOffset(matrix * side + row)),
                  rowBytes);
    auto* to = reinterpret_cast<uint32_t*>(warp.file + instruction.at[matrix]);
    for (int lane = 0; lane < warpSize; ++lane) {
      const int row = lane / 4, column = lane % 4 * 2;
      to[lane] = instruction.transposes ? held[column][row] | uint32_t{held[column + 1][row]} << 16
                                        : held[row][column] | uint32_t{held[row][column + 1]} << 16;
    }
  }
  return true;
}

void multiply(Warp& warp, const Instruction& instruction) {
  static const Adder adder = chooseAdder();
  auto words = [&](int operand) {
    return reinterpret_cast<uint32_t*>(warp.file + instruction.at[operand]);
  };
  constexpr int results = 0, left = 4, right = 8, sums = 10;
  alignas(64) Left a;
  alignas(64) Right b;
  alignas(64) Sums c;
  for (int lane = 0; lane < warpSize; ++lane) {
    const int line = lane / 4, pair = lane % 4 * 2;
    for (int reg = 0; reg < 4; ++reg) {
      const uint32_t both = words(left + reg)[lane];
      a[line + reg % 2 * 8][pair + reg / 2 * 8] = widen(both & 0xffff);
      a[line + reg % 2 * 8][pair + reg / 2 * 8 + 1] = widen(both >> 16);
    }
    for (int reg = 0; reg < 2; ++reg) {
      const uint32_t both = words(right + reg)[lane];
      b[pair + reg * 8][line] = widen(both & 0xffff);
      b[pair + reg * 8 + 1][line] = widen(both >> 16);
    }
    for (int reg = 0; reg < 4; ++reg)
      c[line + reg / 2 * 8][pair + reg % 2] = std::bit_cast<float>(words(sums + reg)[lane]);
  }
  adder(a, b, c);
  for (int lane = 0; lane < warpSize; ++lane)
    for (int reg = 0; reg < 4; ++reg)
      words(results + reg)[lane] = canonical(c[lane / 4 + reg / 2 * 8][lane % 4 * 2 + reg % 2]);
}

} // namespace titan::ptx
