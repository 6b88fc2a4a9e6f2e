#include "compiler/Codegen/kernel/testing/GemmCase.h"

#include "runtime/program/DType.h"

#include <fmt/format.h>

namespace titan::codegen::testing {

std::string moduleText(const GemmCase& c) {
  int64_t lda = (c.transposeA ? c.m : c.k) + c.padding;
  int64_t ldb = (c.transposeB ? c.k : c.n) + c.padding, ldc = c.n + c.padding;
  int64_t strideA = (c.transposeA ? c.k : c.m) * lda;
  int64_t strideB = (c.transposeB ? c.n : c.k) * ldb, strideC = c.m * ldc;
  auto flat = [](int64_t count, bool bf16 = false) {
    return fmt::format("memref<{}x{}>", count, bf16 ? "bf16" : "f32");
  };
  std::string a = flat(c.batch * strideA, c.bf16),
              b = flat(c.batch * strideB, c.bf16 && !c.roundsB),
              o = flat(c.batch * strideC, c.toBf16), bias = flat(c.n, c.toBf16);
  std::string place = c.offset ? fmt::format(" {{kernel.offset = {} : i64}}", *c.offset) : "";
  return fmt::format(
      "func.func @f(%a: {0}{22}, %b: {1}{22}, %c: {2}{22}, %d: {3}{22}) {{\n"
      "kernel.call #kernel.gemm<batch = {4}, m = {5}, n = {6}, k = {7}, lda = {8}, ldb = {9}, "
      "ldc = {10}, strideA = {11}, strideB = {12}, strideC = {13}, transposeA = {14}, "
      "transposeB = {15}, accumulate = {16}, bias = {17}, relu = {18}, tileM = {19}, tileN = {20}> "
      "ins({21}) outs(%c : {2})\nreturn\n}}\n",
      a, b, o, bias, c.batch, c.m, c.n, c.k, lda, ldb, ldc, strideA, strideB, strideC, c.transposeA,
      c.transposeB, c.accumulate, c.bias, c.relu, c.tileM, c.tileN,
      c.bias ? fmt::format("%a, %b, %d : {}, {}, {}", a, b, bias)
             : fmt::format("%a, %b : {}, {}", a, b),
      place);
}

std::string describe(const GemmCase& c) {
  return fmt::format("{} x {} x {}, transposed {} {}, batch {}{}{}{}{}{}{}, padding {}, offset {}",
                     c.m, c.n, c.k, c.transposeA, c.transposeB, c.batch, c.bf16 ? ", bf16" : "",
                     c.toBf16 ? " to bf16" : "", c.roundsB ? ", rounds B" : "",
                     c.accumulate ? ", accumulate" : "", c.bias ? ", bias" : "",
                     c.relu ? ", relu" : "", c.padding, c.offset ? *c.offset : -1);
}

Matrix::Matrix(int64_t count, bool bf16, std::mt19937& generator)
    : bf16(bf16), values(count), bits(count) {
  std::uniform_real_distribution<float> draw(-1, 1);
  for (int64_t i = 0; i < count; ++i) {
    bits[i] = toBFloat16(draw(generator));
    values[i] = bf16 ? fromBFloat16(bits[i]) : draw(generator);
  }
}

float Matrix::at(int64_t i) const { return bf16 ? fromBFloat16(bits[i]) : values[i]; }
void Matrix::set(int64_t i, float value) {
  bits[i] = toBFloat16(value);
  values[i] = value;
}

} // namespace titan::codegen::testing
