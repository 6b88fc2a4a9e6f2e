// A matrix product as a test writes it: its module text and its operands.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace titan::codegen::testing {

struct GemmCase {
  int64_t m, n, k;
  bool transposeA = false, transposeB = false, accumulate = false, bias = false, relu = false;
  int64_t batch = 1, tileM = 64, tileN = 128, padding = 0;
  bool bf16 = false, toBf16 = false;
  bool roundsB = false; ///< B is f32 and rounded
  /// Bytes between an address that wide accesses divide and each operand; none: nothing is known.
  std::optional<int64_t> offset = std::nullopt;
};

/// One function with one kernel.call on flat buffers; leading dimensions have `padding` elements
/// more than a line.
std::string moduleText(const GemmCase& gemm);
/// "65 x 33 x 70, transposed false true, batch 1, bf16": for SCOPED_TRACE.
std::string describe(const GemmCase& gemm);

/// A matrix as the kernel sees it, and its values.
struct Matrix {
  /// Uniform in [-1, 1).
  Matrix(int64_t count, bool bf16, std::mt19937& generator);
  char* data() {
    return bf16 ? reinterpret_cast<char*>(bits.data()) : reinterpret_cast<char*>(values.data());
  }
  float at(int64_t i) const;
  void set(int64_t i, float value);
  bool bf16;
  std::vector<float> values;
  std::vector<uint16_t> bits;
};

} // namespace titan::codegen::testing
