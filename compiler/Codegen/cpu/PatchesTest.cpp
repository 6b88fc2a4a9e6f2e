// Products over matrices of patches, drawn: convolutions of one to three dimensions, forward and of
// the kernel, against a sum in f64, and bit for bit in calls of a few units.
#include "compiler/Codegen/cpu/CpuFeatures.h"
#include "compiler/Codegen/cpu/testing/KernelRunner.h"
#include "compiler/Codegen/kernel/testing/GemmCase.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <numeric>

namespace titan::codegen::testing {
namespace {

/// Lines are positions of all samples, columns taps and channels of a group.
struct Patches {
  std::vector<int64_t> lineExtents, lineStrides, columnExtents, columnStrides;
  int64_t elements = 1; ///< of the tensor, all groups
  int64_t channels = 1; ///< of a group

  static int64_t count(const std::vector<int64_t>& extents) {
    int64_t result = 1;
    for (int64_t extent : extents)
      result *= extent;
    return result;
  }
  int64_t lines() const { return count(lineExtents); }
  int64_t columns() const { return count(columnExtents); }
  std::string text() const {
    return fmt::format("<lines = [{}] by [{}], columns = [{}] by [{}], offset = 0>",
                       fmt::join(lineExtents, ", "), fmt::join(lineStrides, ", "),
                       fmt::join(columnExtents, ", "), fmt::join(columnStrides, ", "));
  }
};

struct Case {
  Patches patches;
  int64_t groups, outputs;
  bool ofKernel; ///< B has the patches, and A is transposed
  bool bf16, toBf16, accumulate;
  int64_t tileM, tileN;

  int64_t m() const { return ofKernel ? outputs : patches.lines(); }
  int64_t n() const { return ofKernel ? patches.columns() : outputs; }
  int64_t k() const { return ofKernel ? patches.lines() : patches.columns(); }
  /// Of the operand that is no matrix of patches.
  int64_t otherStride() const { return ofKernel ? outputs : outputs * k(); }
  int64_t otherElements() const { return groups * outputs * k(); }

  std::string text() const {
    const int64_t leadingC = ofKernel ? n() : groups * outputs;
    const std::string x = fmt::format("memref<{}x{}>", patches.elements, bf16 ? "bf16" : "f32"),
                      y = fmt::format("memref<{}x{}>", otherElements(), bf16 ? "bf16" : "f32"),
                      c = fmt::format("memref<{}x{}>", groups * m() * n(), toBf16 ? "bf16" : "f32");
    const int64_t strideX = groups > 1 ? patches.channels : 0,
                  strideY = groups > 1 ? otherStride() : 0,
                  strideC = groups > 1 ? (ofKernel ? m() * n() : outputs) : 0;
    return fmt::format(
        "func.func @f(%a: {0}, %b: {1}, %c: {2}) {{\n"
        "kernel.call #kernel.gemm<batch = {3}, m = {4}, n = {5}, k = {6}, lda = {7}, ldb = {8}, "
        "ldc = {9}, strideA = {10}, strideB = {11}, strideC = {12}, transposeA = {13}, "
        "transposeB = {14}, accumulate = {15}, bias = false, relu = false, tileM = {16}, "
        "tileN = {17}, {18} = {19}> ins(%a, %b : {0}, {1}) outs(%c : {2})\nreturn\n}}\n",
        ofKernel ? y : x, ofKernel ? x : y, c, groups, m(), n(), k(),
        ofKernel ? groups * outputs : k(), ofKernel ? n() : k(), leadingC,
        ofKernel ? strideY : strideX, ofKernel ? strideX : strideY, strideC, ofKernel, !ofKernel,
        accumulate, tileM, tileN, ofKernel ? "patchesB" : "patchesA", patches.text());
  }
};

Case draw(unsigned seed) {
  std::mt19937 generator(seed);
  auto below = [&](int64_t count) { return static_cast<int64_t>(generator() % count); };
  Case c;
  const int64_t rank = 1 + below(3), batch = 1 + below(3);
  c.groups = below(3) == 0 ? 2 + below(3) : 1;
  c.patches.channels = 1 + below(below(2) == 0 ? 5 : 70);
  c.outputs = 1 + below(below(2) == 0 ? 9 : 80);
  std::vector<int64_t> extents, positions, taps, strides, dilations;
  for (int64_t d = 0; d < rank; ++d) {
    taps.push_back(1 + below(4));
    strides.push_back(1 + below(3));
    dilations.push_back(1 + below(3));
    positions.push_back(1 + below(rank == 1 ? 90 : 9));
    extents.push_back((positions[d] - 1) * strides[d] + (taps[d] - 1) * dilations[d] + 1 +
                      below(3));
  }
  int64_t stride = c.groups * c.patches.channels;
  std::vector<int64_t> steps(rank);
  for (int64_t d = rank - 1; d >= 0; --d) {
    steps[d] = stride;
    stride *= extents[d];
  }
  c.patches.elements = batch * stride;
  c.patches.lineExtents = {batch};
  c.patches.lineStrides = {stride};
  for (int64_t d = 0; d < rank; ++d) {
    c.patches.lineExtents.push_back(positions[d]);
    c.patches.lineStrides.push_back(strides[d] * steps[d]);
    c.patches.columnExtents.push_back(taps[d]);
    c.patches.columnStrides.push_back(dilations[d] * steps[d]);
  }
  c.patches.columnExtents.push_back(c.patches.channels);
  c.patches.columnStrides.push_back(1);
  c.ofKernel = below(2) == 0;
  c.bf16 = below(2) == 0;
  c.toBf16 = c.bf16 && below(2) == 0;
  c.accumulate = !c.toBf16 && below(2) == 0;
  c.tileM = 16 * (1 + below(6));
  c.tileN = 16 * (1 + below(6));
  return c;
}

void check(const Case& c, const std::string& arch) {
  auto target = resolveCpu(arch).take();
  auto runner = KernelRunner::compile(c.text(), target, shapeWith(MatrixUnitKind::None, target));
  ASSERT_TRUE(runner.ok()) << runner.error().message();
  auto call = llvm::cast<kernel::CallOp>((*runner)->kernels()[0].op);
  kernel::GemmAttr gemm = call.getGemm();
  kernel::PatchesAttr patches = c.ofKernel ? gemm.getPatchesB() : gemm.getPatchesA();
  std::mt19937 generator(7);
  Matrix x(c.patches.elements, c.bf16, generator), y(c.otherElements(), c.bf16, generator),
      start(c.groups * c.m() * c.n(), c.toBf16, generator);
  auto run = [&](int64_t step) {
    Matrix result = start;
    char* operands[] = {c.ofKernel ? y.data() : x.data(), c.ofKernel ? x.data() : y.data(),
                        result.data()};
    (*runner)->run(0, operands, {}, step);
    std::vector<float> values;
    for (int64_t i = 0; i < c.groups * c.m() * c.n(); ++i)
      values.push_back(result.at(i));
    return values;
  };
  const std::vector<float> found = run(0);
  const int64_t depth = c.k();
  std::vector<double> rowsOfA(c.m() * depth), columnsOfB(c.n() * depth);
  for (int64_t g = 0; g < c.groups; ++g) {
    double* patch = c.ofKernel ? columnsOfB.data() : rowsOfA.data();
    double* other = c.ofKernel ? rowsOfA.data() : columnsOfB.data();
    for (int64_t line = 0; line < c.patches.lines(); ++line)
      for (int64_t column = 0; column < c.patches.columns(); ++column)
        patch[c.ofKernel ? column * depth + line : line * depth + column] =
            x.at(g * c.patches.channels + patches.at(line, column));
    for (int64_t o = 0; o < c.outputs; ++o)
      for (int64_t k = 0; k < depth; ++k)
        other[o * depth + k] = y.at((c.groups > 1 ? g * c.otherStride() : 0) +
                                    (c.ofKernel ? k * gemm.getLda() + o : o * gemm.getLdb() + k));
    for (int64_t i = 0; i < c.m(); ++i)
      for (int64_t j = 0; j < c.n(); ++j) {
        const int64_t at = g * gemm.getStrideC() + i * gemm.getLdc() + j;
        const double *row = rowsOfA.data() + i * depth, *column = columnsOfB.data() + j * depth;
        const double want =
            std::inner_product(row, row + depth, column, c.accumulate ? start.at(at) : 0.0);
        const double bound =
            1e-5 * (1 + std::sqrt(double(depth))) + (c.toBf16 ? std::abs(want) / 256 : 0);
        ASSERT_NEAR(found[at], want, bound) << "group " << g << ", " << i << ", " << j;
      }
  }
  EXPECT_EQ(run(1), found) << "tile by tile";
  EXPECT_EQ(run(3), found) << "by parts of lines of tiles";
}

TEST(Patches, DrawnConvolutions) {
  const char* chosen = std::getenv("TITAN_TEST_SEED");
  const unsigned first = chosen ? static_cast<unsigned>(std::atoi(chosen)) : 1;
  fmt::print("seeds from {} on (TITAN_TEST_SEED)\n", first);
  for (unsigned seed = first; seed < first + 300; ++seed) {
    const Case drawn = draw(seed);
    SCOPED_TRACE(fmt::format("TITAN_TEST_SEED={}\n{}", seed, drawn.text()));
    check(drawn, seed % 3 == 0 ? "x86-64-v3" : "native");
    if (HasFailure())
      return;
  }
}

} // namespace
} // namespace titan::codegen::testing
