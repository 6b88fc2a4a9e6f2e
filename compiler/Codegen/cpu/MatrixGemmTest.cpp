// Products on the matrix unit, bit by bit, against their order in plain C++: on AMX where this
// machine has it, and with emulated tiles on any.
#include "compiler/Codegen/cpu/MatrixGemm.h"
#include "compiler/Codegen/cpu/CpuFeatures.h"
#include "compiler/Codegen/cpu/GemmKernel.h"
#include "compiler/Codegen/cpu/testing/EmulatedTiles.h"
#include "compiler/Codegen/cpu/testing/KernelRunner.h"
#include "compiler/Codegen/kernel/testing/GemmCase.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>

namespace titan::codegen::testing {
namespace {

/// What the operands are drawn from.
enum class Values { Uniform, WideRange, NearTheSmallest, WithDenormals };

float draw(Values values, std::mt19937& generator) {
  std::uniform_real_distribution<float> mantissa(-1, 1);
  std::uniform_int_distribution<int> wide(-40, 40), small(-64, -61), denormal(-133, -127),
      large(50, 60), one(0, 1);
  switch (values) {
  case Values::Uniform:
    return mantissa(generator);
  case Values::WideRange:
    return std::ldexp(mantissa(generator), wide(generator));
  case Values::NearTheSmallest:
    return std::ldexp(mantissa(generator), small(generator));
  case Values::WithDenormals:
    return std::ldexp(mantissa(generator), one(generator) ? denormal(generator) : large(generator));
  }
  return 0;
}

Matrix operand(int64_t count, bool bf16, Values values, std::mt19937& generator) {
  Matrix matrix(count, bf16, generator);
  for (int64_t i = 0; i < count; ++i)
    matrix.set(i, draw(values, generator));
  return matrix;
}

class Product {
public:
  Product(const GemmCase& gemm, Values values) : c(gemm) {
    std::mt19937 generator(11);
    lda = (c.transposeA ? c.m : c.k) + c.padding;
    ldb = (c.transposeB ? c.k : c.n) + c.padding;
    ldc = c.n + c.padding;
    strideA = (c.transposeA ? c.k : c.m) * lda;
    strideB = (c.transposeB ? c.n : c.k) * ldb;
    strideC = c.m * ldc;
    a.emplace(operand(c.batch * strideA, true, values, generator));
    b.emplace(operand(c.batch * strideB, !c.roundsB, values, generator));
    start.emplace(operand(c.batch * strideC, c.toBf16, values, generator));
    bias.emplace(operand(c.n, c.toBf16, values, generator));
    compute();
  }

  /// The result of the kernel in calls of `step` units, as bits.
  std::vector<uint32_t> run(const KernelRunner& runner, int64_t step) {
    Matrix result = *start;
    std::vector<char*> operands = {a->data(), b->data(), result.data()};
    if (c.bias)
      operands.push_back(bias->data());
    runner.run(0, operands, {}, step);
    return bitsOf(result);
  }

  std::vector<uint32_t> wanted; ///< likewise

private:
  static std::vector<uint32_t> bitsOf(const Matrix& matrix) {
    std::vector<uint32_t> bits;
    for (size_t i = 0; i < matrix.values.size(); ++i)
      bits.push_back(matrix.bf16 ? matrix.bits[i] : std::bit_cast<uint32_t>(matrix.values[i]));
    return bits;
  }

  /// Rows of A and columns of B of one product, each a multiple of 32 elements, the last of them 0.
  struct Depths {
    size_t depth;
    std::vector<uint16_t> rows, columns;

    std::span<const uint16_t> row(int64_t i) const { return {&rows[i * depth], depth}; }
    std::span<const uint16_t> column(int64_t j) const { return {&columns[j * depth], depth}; }
  };

  Depths depthsOf(int64_t matrix) const {
    Depths d = {llvm::alignTo<32>(c.k), {}, {}};
    d.rows.resize(c.m * d.depth);
    d.columns.resize(c.n * d.depth);
    const uint16_t *left = &a->bits[matrix * strideA], *right = &b->bits[matrix * strideB];
    for (int64_t k = 0; k < c.k; ++k) {
      for (int64_t i = 0; i < c.m; ++i)
        d.rows[i * d.depth + k] = left[c.transposeA ? k * lda + i : i * lda + k];
      for (int64_t j = 0; j < c.n; ++j)
        d.columns[j * d.depth + k] = right[c.transposeB ? j * ldb + k : k * ldb + j];
    }
    return d;
  }

  void compute() {
    Matrix result = *start;
    for (int64_t matrix = 0; matrix < c.batch; ++matrix) {
      Depths depths = depthsOf(matrix);
      for (int64_t i = 0; i < c.m; ++i)
        for (int64_t j = 0; j < c.n; ++j) {
          int64_t at = matrix * strideC + i * ldc + j;
          float sum =
              addProducts(c.accumulate ? start->at(at) : 0, depths.row(i), depths.column(j));
          if (c.bias)
            sum += bias->at(j);
          result.set(at, c.relu && !(sum > 0) ? 0 : sum);
        }
    }
    wanted = bitsOf(result);
  }

  GemmCase c;
  int64_t lda, ldb, ldc, strideA, strideB, strideC;
  std::optional<Matrix> a, b, start, bias;
};

void expectBits(Product& product, const KernelRunner& runner) {
  for (int64_t step : {0, 1, 3}) {
    if (step > 0 && runner.kernels()[0].units == 1)
      continue;
    std::vector<uint32_t> found = product.run(runner, step);
    int64_t wrong = 0, first = -1;
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i] != product.wanted[i] && wrong++ == 0)
        first = i;
    ASSERT_EQ(wrong, 0) << "of " << found.size() << " elements, the first at " << first << ": "
                        << std::hex << found[first] << ", not " << product.wanted[first]
                        << ", in calls of " << std::dec << step << " units";
  }
}

/// By the native CPU, with blocks as `machine` says.
void check(const GemmCase& c, Values values = Values::Uniform,
           const std::function<void(MachineModel&)>& change = nullptr) {
  SCOPED_TRACE(describe(c));
  Product product(c, values);
  TargetInfo native = resolveCpu("native").take();
  if (change)
    change(*native.machine);
  std::vector<MatrixUnitKind> units = {MatrixUnitKind::Emulated};
  if (!whyNoTiles())
    units.push_back(MatrixUnitKind::Amx);
  for (MatrixUnitKind unit : units) {
    SCOPED_TRACE(unit == MatrixUnitKind::Amx ? "AMX" : "emulated tiles");
    auto runner = KernelRunner::compile(moduleText(c), native, shapeWith(unit, native));
    ASSERT_TRUE(runner.ok()) << runner.error().message();
    expectBits(product, **runner);
  }
}

class MatrixGemm : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    if (const char* reason = whyNoTiles())
      std::cout << "emulated tiles only: " << reason << "\n";
  }
};

struct Layout {
  bool transposeA, transposeB;
};
constexpr Layout layouts[] = {{false, false}, {false, true}, {true, false}, {true, true}};

TEST_F(MatrixGemm, ShapesAroundTheBlocks) {
  size_t next = 0;
  for (int64_t m : {1, 16, 31, 32, 33, 65})
    for (int64_t n : {1, 16, 31, 32, 33, 100}) {
      auto [transposeA, transposeB] = layouts[next++ % std::size(layouts)];
      check({.m = m,
             .n = n,
             .k = 40,
             .transposeA = transposeA,
             .transposeB = transposeB,
             .tileM = 48,
             .tileN = 64,
             .bf16 = true});
    }
}

TEST_F(MatrixGemm, DepthsAroundStepsAndPanels) {
  for (auto [transposeA, transposeB] : layouts)
    for (int64_t k : {1, 31, 32, 33, 64, 385, 800})
      for (bool toBf16 : {false, true})
        check({.m = 40,
               .n = 50,
               .k = k,
               .transposeA = transposeA,
               .transposeB = transposeB,
               .tileM = 40,
               .tileN = 50,
               .padding = k % 3,
               .bf16 = true,
               .toBf16 = toBf16});
}

// B is packed in several blocks, of columns and along k; the sums of a strip lie apart.
TEST_F(MatrixGemm, BlocksOfB) {
  for (bool toBf16 : {false, true})
    for (bool transposeA : {false, true})
      check({.m = 40,
             .n = 790,
             .k = 1100,
             .transposeA = transposeA,
             .transposeB = !transposeA,
             .tileM = 40,
             .tileN = 790,
             .bf16 = true,
             .toBf16 = toBf16});
}

// So do the sums of a block, of which there are two, one below the other.
TEST_F(MatrixGemm, BlocksOfSums) {
  check({.m = 700,
         .n = 760,
         .k = 700,
         .transposeA = true,
         .tileM = 700,
         .tileN = 760,
         .bf16 = true,
         .toBf16 = true});
}

TEST_F(MatrixGemm, Epilogues) {
  for (bool accumulate : {false, true})
    for (bool bias : {false, true})
      for (bool relu : {false, true})
        for (bool toBf16 : {false, true})
          for (int64_t k : {60, 500}) {
            if (accumulate && toBf16)
              continue;
            check({.m = 37,
                   .n = 70,
                   .k = k,
                   .transposeB = true,
                   .accumulate = accumulate,
                   .bias = bias,
                   .relu = relu,
                   .tileM = 32,
                   .tileN = 48,
                   .padding = 3,
                   .bf16 = true,
                   .toBf16 = toBf16});
          }
}

TEST_F(MatrixGemm, RoundsB) {
  for (bool transposeB : {false, true})
    for (int64_t k : {32, 45, 420})
      check({.m = 33,
             .n = 49,
             .k = k,
             .transposeB = transposeB,
             .padding = 1,
             .bf16 = true,
             .toBf16 = k > 45,
             .roundsB = true});
}

TEST_F(MatrixGemm, BatchesAndLinesOfUnits) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{70, 200}, {200, 70}})
    check({.m = m,
           .n = n,
           .k = 50,
           .transposeB = true,
           .batch = 3,
           .tileM = 32,
           .tileN = 16,
           .bf16 = true});
}

TEST_F(MatrixGemm, ExtremeValues) {
  for (Values values : {Values::WideRange, Values::NearTheSmallest, Values::WithDenormals})
    for (auto [transposeA, transposeB] : layouts) {
      SCOPED_TRACE(static_cast<int>(values));
      for (bool accumulate : {false, true})
        check({.m = 40,
               .n = 60,
               .k = 200,
               .transposeA = transposeA,
               .transposeB = transposeB,
               .accumulate = accumulate,
               .bf16 = true},
              values);
    }
}

int64_t drawOf(std::mt19937& generator, std::initializer_list<int64_t> values) {
  return values.begin()[generator() % values.size()];
}

// Sums do not depend on what is packed at a time. TITAN_TEST_SEED draws others.
TEST_F(MatrixGemm, DrawnShapesAndBlocks) {
  const char* seed = std::getenv("TITAN_TEST_SEED");
  std::mt19937 generator(seed ? std::atoi(seed) : 1);
  auto upTo = [&](int64_t most) { return 1 + static_cast<int64_t>(generator() % most); };
  auto flag = [&] { return generator() % 2 == 0; };
  for (int draw = 0; draw < 24; ++draw) {
    GemmCase c = {.m = upTo(90), .n = upTo(120), .k = upTo(300)};
    c.transposeA = flag(), c.transposeB = flag();
    c.bf16 = true, c.toBf16 = flag(), c.roundsB = !c.transposeA && flag();
    c.accumulate = !c.toBf16 && flag(), c.bias = flag(), c.relu = flag();
    c.batch = upTo(3), c.tileM = 16 * upTo(6), c.tileN = 16 * upTo(8), c.padding = upTo(6) - 1;
    const int64_t depth = drawOf(generator, {1, 32, 64, 96, 384});
    const int64_t columns = drawOf(generator, {32, 64, 512});
    const int64_t elements = drawOf(generator, {1, 1 << 11, 1 << 13, 1 << 19});
    SCOPED_TRACE(fmt::format("draw {}: tiles {} x {}, panels of {}, {} columns and {} elements of "
                             "B at a time",
                             draw, c.tileM, c.tileN, depth, columns, elements));
    check(c, static_cast<Values>(generator() % 4), [&](MachineModel& machine) {
      machine.matrixPanelDepth = depth;
      machine.matrixColumns = machine.matrixColumnsTransposed = columns;
      machine.matrixBlockElements = elements;
    });
    if (HasFatalFailure())
      return;
  }
}

TEST_F(MatrixGemm, RunsOnNarrowVectorsToo) {
  GemmCase c = {.m = 45,
                .n = 70,
                .k = 90,
                .transposeB = true,
                .bias = true,
                .padding = 1,
                .bf16 = true,
                .toBf16 = true};
  Product product(c, Values::Uniform);
  TargetInfo narrow = resolveCpu("x86-64-v3").take();
  auto runner =
      KernelRunner::compile(moduleText(c), narrow, shapeWith(MatrixUnitKind::Emulated, narrow));
  ASSERT_TRUE(runner.ok()) << runner.error().message();
  expectBits(product, **runner);
}

// Intel's SDM on TDPBF16PS, by sums that any other order rounds differently.
TEST(MatrixUnit, EmulatedSumsAreInTheOrderOfTheManual) {
  auto sum = [](float start, std::initializer_list<std::pair<size_t, float>> values, size_t depth,
                float factor = 1) {
    std::vector<uint16_t> a(depth), b(depth, toBFloat16(factor));
    for (auto [k, value] : values)
      a[k] = toBFloat16(value);
    return addProducts(start, a, b);
  };
  // Even elements cancel by themselves, and so nothing of the odd ones and of the start is lost.
  EXPECT_EQ(sum(0.5f, {{0, 0x1p24f}, {1, 1.f}, {2, -0x1p24f}, {3, 1.f}}, 32), 2.5f);
  // Their sum is complete before the start is added; that is rounded after each 32.
  EXPECT_EQ(sum(0x1p24f, {{0, 1.f}, {1, 1.f}}, 32), 0x1p24f + 2);
  EXPECT_EQ(sum(0x1p24f, {{0, 1.f}, {33, 1.f}}, 64), 0x1p24f);
  // Denormal operands and results are zero.
  EXPECT_EQ(sum(0, {{0, 0x1p-127f}}, 32, 0x1p10f), 0.f);
  EXPECT_EQ(sum(0, {{0, 0x1p-126f}}, 32, 0.5f), 0.f);
}

TEST(MatrixUnit, IsOfTheTarget) {
  auto unitOf = [](const char* arch) { return vectorShape(resolveCpu(arch).take()).matrixUnit; };
  for (const char* arch : {"sapphirerapids", "graniterapids"})
    EXPECT_EQ(unitOf(arch), MatrixUnitKind::Amx) << arch;
  for (const char* arch : {"x86-64-v3", "x86-64-v4", "znver5", "cooperlake"})
    EXPECT_EQ(unitOf(arch), MatrixUnitKind::None) << arch;
}

} // namespace
} // namespace titan::codegen::testing
