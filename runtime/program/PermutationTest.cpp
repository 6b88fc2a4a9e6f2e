#include "runtime/program/Permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace titan {
namespace {

TEST(Permutation, IsABijection) {
  std::vector<uint64_t> sizes = {999, 1000, 1023, 1024, 1025, 4095, 4096, 4097, 60000};
  for (uint64_t n = 1; n <= 130; ++n)
    sizes.push_back(n);
  for (uint64_t n : sizes) {
    const Permutation permutation(n, 42, 1);
    std::vector<bool> seen(n);
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t image = permutation(i);
      ASSERT_LT(image, n);
      ASSERT_FALSE(seen[image]) << "n = " << n << ", image " << image;
      seen[image] = true;
    }
  }
}

TEST(Permutation, IsStable) {
  // A change here changes what a resumed run reads: samples would be lost and repeated.
  const Permutation permutation(10, 1, 2);
  const std::vector<uint64_t> expected = {3, 9, 8, 4, 5, 1, 6, 7, 2, 0};
  for (uint64_t i = 0; i < 10; ++i)
    EXPECT_EQ(permutation(i), expected[i]);
}

TEST(Permutation, LargeDomainsStayInside) {
  const uint64_t n = (uint64_t{1} << 40) + 12345;
  const Permutation permutation(n, 1, 0);
  for (uint64_t i = 0; i < 1000; ++i)
    EXPECT_LT(permutation(n - 1 - i), n);
}

TEST(Permutation, EverySampleComesFirstEquallyOften) {
  constexpr uint64_t n = 10, epochs = 20000;
  std::vector<double> counts(n * n);
  for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const Permutation permutation(n, 7, epoch);
    for (uint64_t i = 0; i < n; ++i)
      ++counts[i * n + permutation(i)];
  }
  for (uint64_t i = 0; i < n; ++i) {
    double chiSquare = 0;
    for (uint64_t j = 0; j < n; ++j) {
      const double difference = counts[i * n + j] - epochs / double{n};
      chiSquare += difference * difference / (epochs / double{n});
    }
    EXPECT_LT(chiSquare, 33.7) << "position " << i; // 9 degrees of freedom, p = 1e-4
  }
}

TEST(Permutation, NeighboursAreIndependent) {
  // The mean distance of two random samples is (n + 1) / 3.
  constexpr uint64_t n = 5000;
  const Permutation permutation(n, 3, 0);
  double sum = 0;
  for (uint64_t i = 0; i + 1 < n; ++i)
    sum += std::abs(static_cast<double>(permutation(i)) - static_cast<double>(permutation(i + 1)));
  EXPECT_NEAR(sum / (n - 1), (n + 1) / 3.0, 0.03 * n);
}

TEST(Permutation, SamplesFollowEpochs) {
  std::vector<uint64_t> first, second;
  for (uint64_t position = 0; position < 50; ++position) {
    first.push_back(sampleAt(position, 50, 9, true));
    second.push_back(sampleAt(50 + position, 50, 9, true));
  }
  EXPECT_NE(first, second);
  EXPECT_TRUE(std::is_permutation(first.begin(), first.end(), second.begin()));
  EXPECT_EQ(sampleAt(107, 50, 9, false), 7u);
}

} // namespace
} // namespace titan
