// The product on tensor cores: any shape against a sum in f64, values that are no numbers, and what
// it costs.
#include "compiler/Codegen/cuda/testing/CudaGemm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace titan::codegen::cuda::testing {
namespace {

/// Within the rounding of each addition, and of the result; the same bits in three orders.
void check(const GemmCase& c, unsigned seed = 7) {
  SCOPED_TRACE(describe(c));
  CudaGemm gemm(c, seed);
  ASSERT_TRUE(gemm.ok());
  EXPECT_NE(gemm.ptx().find("mma.sync"), std::string::npos);
  std::vector<float> found = gemm.run();
  const float start = c.accumulate || c.bias ? 3 : 1;
  gemm.eachElement([&](const CudaGemm::Element& element) {
    double sum = 0, terms = start;
    for (int64_t k = 0; k < c.k; ++k) {
      const double term = double{gemm.a(element, k)} * double{gemm.b(element, k)};
      sum += term;
      terms += std::abs(term);
    }
    const float want = gemm.finish(element, static_cast<float>(sum));
    const double bound = std::ldexp(static_cast<double>(c.k + 3) * terms, -23) +
                         (c.toBf16 ? std::ldexp(std::abs(double{want}), -7) : 0);
    ASSERT_LE(std::abs(double{found[element.at]} - want), bound) << element.i << ", " << element.j;
  });
  EXPECT_EQ(gemm.untouched(found), "");
  EXPECT_EQ(gemm.run(ptx::Order::Descending), found);
  EXPECT_EQ(gemm.run(ptx::Order::Random), found);
}

TEST(CudaTensorGemm, RandomShapes) {
  std::mt19937 generator(5);
  auto below = [&](int64_t limit) { return static_cast<int64_t>(generator() % limit); };
  for (unsigned i = 0; i < 48; ++i) {
    GemmCase c{.m = 1 + below(i % 3 == 0 ? 300 : 70),
               .n = 1 + below(i % 3 == 1 ? 300 : 70),
               .k = 1 + below(i % 3 == 2 ? 400 : 130),
               .transposeA = i % 2 != 0,
               .transposeB = i / 2 % 2 != 0,
               .accumulate = below(2) != 0,
               .bias = below(2) != 0,
               .relu = below(2) != 0,
               .batch = 1 + below(3),
               .padding = below(4) * below(9),
               .bf16 = true,
               .toBf16 = below(2) != 0};
    if (below(3) != 0)
      c.offset = 2 << below(5);
    if (c.offset && *c.offset == 2 && !c.toBf16)
      c.offset = 4; // what is written as f32 lies at multiples of 4
    check(c, i);
  }
}

/// Widths of copies: of all operands the base, the leading dimension and the batch are multiples of
/// `elements`.
TEST(CudaTensorGemm, Alignments) {
  for (int64_t elements : {1, 2, 4, 8})
    for (bool transposeA : {false, true})
      for (bool transposeB : {false, true})
        check({.m = 5 * 16 - elements,
               .n = 3 * 16 + elements,
               .k = 64 + 3 * elements,
               .transposeA = transposeA,
               .transposeB = transposeB,
               .batch = 2,
               .padding = 0,
               .bf16 = true,
               .toBf16 = true,
               .offset = 2 * elements});
}

/// Tiles of 128, 64, 32 and 16; many blocks take large ones.
TEST(CudaTensorGemm, Tiles) {
  for (bool transpose : {false, true}) {
    check({.m = 256,
           .n = 384,
           .k = 72,
           .transposeA = transpose,
           .transposeB = !transpose,
           .batch = 22,
           .bf16 = true,
           .toBf16 = true,
           .offset = 0});
    check({.m = 129,
           .n = 140,
           .k = 40,
           .transposeA = transpose,
           .transposeB = transpose,
           .batch = 2,
           .bf16 = true,
           .offset = 0});
    check({.m = 10, .n = 520, .k = 136, .transposeA = transpose, .bf16 = true, .offset = 0});
    check({.m = 520, .n = 10, .k = 136, .transposeB = transpose, .bf16 = true, .offset = 0});
    check({.m = 1, .n = 1, .k = 1, .transposeB = transpose, .bf16 = true});
  }
}

TEST(CudaTensorGemm, Assembles) {
  for (int i = 0; i < 8; ++i) {
    const bool odd = i / 4 != 0;
    GemmCase c{.m = 1024,
               .n = 1280,
               .k = odd ? 257 : 256,
               .transposeA = i % 2 != 0,
               .transposeB = i / 2 % 2 != 0,
               .accumulate = i % 2 != 0,
               .bias = i % 2 == 0,
               .relu = true,
               .batch = 2,
               .padding = odd ? 1 : 0,
               .bf16 = true,
               .toBf16 = i / 2 % 2 != 0,
               .offset = 0};
    SCOPED_TRACE(describe(c));
    CudaGemm gemm(c);
    ASSERT_TRUE(gemm.ok());
    expectAssembles(gemm.ptx());
  }
}

/// A NaN or an infinity in row 20 of A and in column 3 of B, next to the end of k.
TEST(CudaTensorGemm, NanAndInfinityStayWhereTheyBelong) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (float value : {infinity, std::numeric_limits<float>::quiet_NaN()})
    for (bool transpose : {false, true})
      for (int64_t k : {7, 33, 70}) {
        GemmCase c{.m = 21,
                   .n = 35,
                   .k = k,
                   .transposeA = transpose,
                   .transposeB = !transpose,
                   .bf16 = true,
                   .offset = 0};
        SCOPED_TRACE(describe(c));
        CudaGemm gemm(c);
        ASSERT_TRUE(gemm.ok());
        gemm.setA({0, 20, 0, 0}, k - 1, value);
        gemm.setB({0, 0, 3, 0}, k - 2, value);
        std::vector<float> found = gemm.run();
        gemm.eachElement([&](const CudaGemm::Element& element) {
          float sum = 0;
          for (int64_t term = 0; term < k; ++term)
            sum = std::fma(gemm.a(element, term), gemm.b(element, term), sum);
          const float result = found[element.at];
          EXPECT_EQ(std::isfinite(result), element.i != 20 && element.j != 3);
          EXPECT_TRUE(result == sum || (std::isnan(result) && std::isnan(sum)))
              << element.i << ", " << element.j << ": " << result << ", not " << sum;
        });
      }
}

/// Aligned operands: copies of 16 bytes that read each element once a block, no bank twice.
TEST(CudaTensorGemm, CopiesWideAndWithoutBankConflicts) {
  for (int i = 0; i < 4; ++i)
    for (int64_t side : {32, 64, 128}) {
      const bool large = side == 128;
      GemmCase c{.m = large ? 512 : side,
                 .n = large ? 512 : side,
                 .k = large ? 512 : 128,
                 .transposeA = i % 2 != 0,
                 .transposeB = i / 2 != 0,
                 .batch = large ? 8 : 1,
                 .bf16 = true,
                 .toBf16 = true,
                 .offset = 0};
      SCOPED_TRACE(describe(c));
      CudaGemm gemm(c);
      ASSERT_TRUE(gemm.ok());
      gemm.run();
      const ptx::Counters& counters = gemm.counters();
      EXPECT_EQ(counters.sharedLoads.bankConflicts, 0);
      EXPECT_EQ(counters.sharedStores.bankConflicts, 0);
      EXPECT_EQ(counters.globalLoads.byWidth[4], counters.globalLoads.requests);
      EXPECT_LE(counters.globalLoads.sectors * 32, counters.globalLoads.bytes);
      EXPECT_EQ(counters.globalStores.bytes, c.batch * c.m * c.n * 2);
      EXPECT_EQ(counters.globalStores.sectors * 32, counters.globalStores.bytes);
      if (large) {
        EXPECT_EQ(counters.globalLoads.bytes, c.batch * 4 * (c.m + c.n) * c.k * 2);
        EXPECT_EQ(counters.matrix, c.batch * c.m * c.n * c.k / (16 * 8 * 16) * 32);
        // An mma does 2048 multiply-adds: the rest is little beside it.
        EXPECT_LE(2 * counters.laneInstructions(), 7 * counters.matrix);
      }
    }
}

} // namespace
} // namespace titan::codegen::cuda::testing
