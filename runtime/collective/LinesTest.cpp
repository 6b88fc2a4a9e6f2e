#include "runtime/collective/Lines.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

Lines exampleLines() {
  Lines lines;
  lines.add(DType::F32, 40);  // lines 0 to 2, 16 elements each
  lines.add(DType::I64, 0);   // none
  lines.add(DType::I64, 1);   // line 3
  lines.add(DType::BF16, 33); // lines 4 and 5
  return lines;
}

TEST(Lines, NeverSpanTwoPieces) { EXPECT_EQ(exampleLines().count(), 6); }

TEST(Lines, EveryElementIsInOneOfTheParts) {
  const Lines lines = exampleLines();
  for (int64_t parts : {1, 2, 3, 6, 7, 64}) {
    std::vector<std::vector<int>> hits = {
        std::vector<int>(40), {}, std::vector<int>(1), std::vector<int>(33)};
    for (int64_t part = 0; part < parts; ++part)
      lines.forEach(lines.all().part(part, parts),
                    [&](size_t piece, int64_t begin, int64_t end, int64_t) {
                      for (int64_t i = begin; i < end; ++i)
                        ++hits[piece].at(static_cast<size_t>(i));
                    });
    for (const std::vector<int>& piece : hits)
      EXPECT_EQ(piece, std::vector<int>(piece.size(), 1)) << parts << " parts";
  }
}

TEST(Lines, SayOnWhichOneElementsBegin) {
  std::vector<std::vector<int64_t>> seen;
  exampleLines().forEach({1, 5}, [&](size_t piece, int64_t begin, int64_t end, int64_t line) {
    seen.push_back({static_cast<int64_t>(piece), begin, end, line});
  });
  EXPECT_EQ(seen, (std::vector<std::vector<int64_t>>{{0, 16, 40, 1}, {2, 0, 1, 3}, {3, 0, 32, 4}}));
}

} // namespace
} // namespace titan
