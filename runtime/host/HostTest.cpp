#include "runtime/host/ResidentMemory.h"

#include <gtest/gtest.h>

#include <vector>

namespace titan {
namespace {

TEST(ResidentMemory, GrowsWithWhatIsTouched) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the thread sanitizer has memory of its own";
#endif
  const int64_t before = peakResidentBytes();
  if (before == 0)
    GTEST_SKIP() << "the system does not say how much memory a process has";
  constexpr int64_t bytes = int64_t{256} << 20;
  const std::vector<char> touched(bytes, 1);
  const int64_t after = peakResidentBytes();
  EXPECT_GE(after, bytes);
  EXPECT_LE(after - before, bytes + (16 << 20));
  EXPECT_EQ(touched.back(), 1);
}

} // namespace
} // namespace titan
