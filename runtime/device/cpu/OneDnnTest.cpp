#include "runtime/device/cpu/OneDnn.h"
#include "runtime/device/cpu/CpuFeatures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace titan {
namespace {

std::vector<float> randomValues(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(count);
  for (float& value : values)
    value = distribution(generator);
  return values;
}

struct Case {
  Gemm gemm;
  std::vector<float> a, b, c, bias;

  explicit Case(Gemm g) : gemm(g) {
    a = randomValues(g.batch * g.batchStrideA, 1);
    b = randomValues(g.batch * g.batchStrideB, 2);
    c = randomValues(g.batch * g.batchStrideC, 3);
    bias = randomValues(g.n, 4);
  }

  std::vector<float> run(const OneDnn& library, int threads) const {
    auto pool = ThreadPool::create(threads).take();
    library.attach(*pool);
    std::vector<float> out = c;
    char* operands[] = {(char*)a.data(), (char*)b.data(), (char*)out.data(), (char*)bias.data()};
    pool->parallelFor(gemm.units(), 1,
                      [&](int64_t begin, int64_t end) { library.run(gemm, operands, begin, end); });
    return out;
  }

  std::vector<float> reference() const {
    const Gemm& g = gemm;
    std::vector<float> out = c;
    for (int64_t s = 0; s < g.batch; ++s)
      for (int64_t i = 0; i < g.m; ++i)
        for (int64_t j = 0; j < g.n; ++j) {
          float& element = out[s * g.batchStrideC + i * g.ldc + j];
          double sum = g.accumulate ? element : 0;
          for (int64_t k = 0; k < g.k; ++k)
            sum += double(a[s * g.batchStrideA + (g.transposeA ? k * g.lda + i : i * g.lda + k)]) *
                   b[s * g.batchStrideB + (g.transposeB ? j * g.ldb + k : k * g.ldb + j)];
          if (g.bias)
            sum += bias[j];
          element = static_cast<float>(g.relu ? std::max(sum, 0.0) : sum);
        }
    return out;
  }
};

Gemm makeGemm(int64_t m, int64_t n, int64_t k, bool ta, bool tb, int64_t batch = 1) {
  Gemm g;
  g.m = m, g.n = n, g.k = k, g.batch = batch;
  g.transposeA = ta, g.transposeB = tb;
  g.lda = (ta ? m : k) + 3, g.ldb = (tb ? k : n) + 5,
  g.ldc = n + 1; // strided: tiles must not depend on it
  g.batchStrideA = (ta ? k : m) * g.lda, g.batchStrideB = (tb ? n : k) * g.ldb,
  g.batchStrideC = m * g.ldc;
  g.tileM = 32, g.tileN = 48;
  return g;
}

class OneDnnTest : public testing::Test {
protected:
  void SetUp() override {
    auto loaded = OneDnn::load();
    if (!loaded.ok())
      GTEST_SKIP() << loaded.error().message();
    library = loaded.take();
  }
  std::optional<OneDnn> library;
};

TEST_F(OneDnnTest, MatchesTheDefinition) {
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (bool accumulate : {false, true})
        for (int epilogue = 0; epilogue < 4; ++epilogue) {
          Gemm g = makeGemm(70, 101, 37, ta, tb, 3);
          g.accumulate = accumulate, g.bias = epilogue & 1, g.relu = epilogue & 2;
          Case example(g);
          std::vector<float> got = example.run(*library, 2), want = example.reference();
          for (size_t i = 0; i < got.size(); ++i)
            ASSERT_NEAR(got[i], want[i], 1e-4)
                << "element " << i << " transposeA " << ta << " transposeB " << tb;
        }
}

TEST_F(OneDnnTest, BitsDoNotDependOnThreads) {
  Gemm g = makeGemm(256, 300, 200, false, true);
  g.bias = g.relu = true;
  Case example(g);
  std::vector<float> one = example.run(*library, 1);
  for (int threads : {2, 3, 5}) {
    std::vector<float> more = example.run(*library, threads);
    EXPECT_EQ(std::memcmp(one.data(), more.data(), one.size() * sizeof(float)), 0)
        << threads << " threads";
  }
}

TEST_F(OneDnnTest, ReluKeepsNaN) {
  Gemm g = makeGemm(4, 4, 4, false, false);
  g.relu = true;
  Case example(g);
  example.a[0] = std::nanf("");
  EXPECT_TRUE(std::isnan(example.run(*library, 1)[0]));
}

TEST_F(OneDnnTest, MultipliesBFloat16) {
  Gemm g = makeGemm(5, 6, 8, false, false);
  g.a = g.b = DType::BF16;
  if (!library->supports(g))
    GTEST_SKIP() << "oneDNN " << library->version() << " has no bf16 products on this CPU";
  auto bits = [](float value) { // truncation is exact for small integers
    uint32_t word;
    std::memcpy(&word, &value, 4);
    return static_cast<uint16_t>(word >> 16);
  };
  std::vector<uint16_t> a(g.batchStrideA), b(g.batchStrideB);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = bits(static_cast<float>(i % 7));
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = bits(static_cast<float>(i % 5));
  std::vector<float> c(g.batchStrideC);
  char* operands[] = {(char*)a.data(), (char*)b.data(), (char*)c.data()};
  library->run(g, operands, 0, g.units());
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      int64_t sum = 0;
      for (int64_t k = 0; k < g.k; ++k)
        sum += (i * g.lda + k) % 7 * ((k * g.ldb + j) % 5);
      EXPECT_EQ(c[i * g.ldc + j], sum);
    }
}

TEST_F(OneDnnTest, SupportsOnlyWhatItComputes) {
  Gemm g;
  EXPECT_TRUE(library->supports(g));
  g.a = DType::BF16;
  EXPECT_FALSE(library->supports(g));
  g.b = DType::BF16;
  if (hasCpuFeature("avx512bw"))
    EXPECT_TRUE(library->supports(g));
  g.c = DType::BF16;
  EXPECT_FALSE(library->supports(g));
}

} // namespace
} // namespace titan
