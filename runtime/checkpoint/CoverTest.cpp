#include "runtime/checkpoint/Cover.h"

#include "runtime/program/Random.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace titan::checkpoint {
namespace {

std::string errorOf(const std::vector<Box>& boxes, const Shape& shape) {
  const Status status = checkCoverOnce(boxes, shape);
  return status.ok() ? "" : status.error().message();
}

struct Draw {
  uint64_t key, count = 0;
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(uniformDraw(key, 0, count++) * static_cast<float>(bound));
  }
};

/// Cuts a box of the list in two along a drawn plane.
void cutOne(std::vector<Box>& boxes, Draw& draw) {
  Box& box = boxes[static_cast<size_t>(draw.below(static_cast<int64_t>(boxes.size())))];
  const auto d = static_cast<size_t>(draw.below(static_cast<int64_t>(box.at.size())));
  const int64_t at = draw.below(box.extent[d] + 1);
  Box rest = box;
  rest.at[d] += at, rest.extent[d] -= at, box.extent[d] = at;
  boxes.push_back(rest);
}

/// The definition: how often is each element covered?
bool coversOnce(const std::vector<Box>& boxes, const Shape& shape) {
  for (int64_t i = 0; i < elementCount(shape); ++i) {
    int64_t times = 0;
    for (const Box& box : boxes) {
      bool inside = true;
      int64_t rest = i;
      for (size_t d = shape.size(); d-- > 0; rest /= shape[d])
        inside =
            inside && rest % shape[d] >= box.at[d] && rest % shape[d] < box.at[d] + box.extent[d];
      times += inside;
    }
    if (times != 1)
      return false;
  }
  return true;
}

TEST(Cover, IsThatOfTheDefinition) {
  int covers = 0, others = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Draw draw{seed};
    Shape shape(1 + static_cast<size_t>(draw.below(3)));
    for (int64_t& extent : shape)
      extent = 1 + draw.below(4);
    std::vector<Box> boxes = {{Shape(shape.size(), 0), shape}};
    for (int64_t cuts = draw.below(8); cuts > 0; --cuts)
      cutOne(boxes, draw);
    if (draw.below(2) == 0) { // somewhere else, with the same number of elements
      Box& moved = boxes[static_cast<size_t>(draw.below(static_cast<int64_t>(boxes.size())))];
      for (size_t d = 0; d < shape.size(); ++d)
        moved.at[d] = draw.below(shape[d] - moved.extent[d] + 1);
    }
    const bool expected = coversOnce(boxes, shape);
    ASSERT_EQ(errorOf(boxes, shape).empty(), expected);
    ++(expected ? covers : others);
  }
  EXPECT_GT(std::min(covers, others), 200);
}

TEST(Cover, OfAPinwheel) {
  const std::vector<Box> boxes = {
      {{0, 0}, {1, 2}}, {{0, 2}, {2, 1}}, {{2, 1}, {1, 2}}, {{1, 0}, {2, 1}}, {{1, 1}, {1, 1}}};
  EXPECT_EQ(errorOf(boxes, {3, 3}), "");
}

TEST(Cover, SaysWhatIsWrong) {
  EXPECT_EQ(errorOf({{{0}, {2}}}, {3}), "the pieces in the files hold 2 elements");
  EXPECT_EQ(errorOf({{{0}, {2}}, {{1}, {1}}}, {3}), "the pieces at [0] and [1] overlap");
  EXPECT_EQ(errorOf({{{}, {}}, {{}, {}}}, {}), "the pieces in the files hold 2 elements");
  EXPECT_EQ(errorOf({{{}, {}}}, {}), "");
  EXPECT_EQ(errorOf({}, {0, 4}), "");
  std::vector<Box> halves;
  for (int64_t d = 0; d < 9; ++d) {
    halves.push_back({Shape(9, 0), Shape(9, 2)});
    halves.back().extent[static_cast<size_t>(d)] = 1;
  }
  EXPECT_EQ(errorOf({halves.begin(), halves.begin() + 2}, Shape(9, 2)),
            "the pieces at [0, 0, 0, 0, 0, 0, 0, 0, 0] and [0, 0, 0, 0, 0, 0, 0, 0, 0] overlap");
  // As many elements as there are, so that the count does not show it.
  EXPECT_EQ(errorOf({{Shape(9, 0), Shape(9, 1)},
                     {Shape(9, 1), Shape(9, 1)},
                     {Shape(9, 0), {1, 2, 2, 2, 2, 2, 2, 2, 2}},
                     {Shape(9, 0), {1, 2, 2, 2, 2, 2, 2, 2, 1}},
                     {Shape(9, 0), {1, 2, 2, 2, 2, 2, 2, 1, 1}},
                     {Shape(9, 0), {1, 2, 2, 2, 2, 2, 1, 1, 1}},
                     {Shape(9, 0), {1, 2, 2, 2, 2, 1, 1, 1, 1}},
                     {Shape(9, 0), {1, 2, 2, 2, 1, 1, 1, 1, 1}},
                     {Shape(9, 0), {1, 2, 2, 1, 1, 1, 1, 1, 1}},
                     {Shape(9, 0), {1, 2, 1, 1, 1, 1, 1, 1, 1}}},
                    Shape(9, 2)),
            "the pieces cut 9 dimensions, at most 8 are allowed");
}

TEST(Cover, OfManyPiecesTakesNoPairs) {
  // 40,000 pieces, cut along both dimensions, are 800 million pairs.
  constexpr int64_t side = 200;
  std::vector<Box> boxes;
  for (int64_t i = 0; i < side; ++i)
    for (int64_t j = 0; j < side; ++j)
      boxes.push_back({{3 * i, 5 * j}, {3, 5}});
  EXPECT_EQ(errorOf(boxes, {3 * side, 5 * side}), "");
}

} // namespace
} // namespace titan::checkpoint
