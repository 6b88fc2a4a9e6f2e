#include "runtime/program/Placement.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

const std::vector<MeshAxis> mesh = {{"replicate", 3}, {"shard", 2}, {"tensor", 2}};
enum : uint8_t { Replicate, Shard, Tensor };

/// How often the ranks hold each element of `global`, row-major.
std::vector<int> coverage(const Shape& global, const Placement& placement) {
  std::vector<int> times(static_cast<size_t>(elementCount(global)));
  for (int64_t r = 0; r < mesh[0].ranks; ++r)
    for (int64_t s = 0; s < mesh[1].ranks; ++s)
      for (int64_t t = 0; t < mesh[2].ranks; ++t)
        for (const Box& box : boxesOf(global, placement, mesh, std::array{r, s, t}))
          for (int64_t i = 0; i < box.extent[0]; ++i)
            for (int64_t j = 0; j < box.extent[1]; ++j)
              ++times[static_cast<size_t>((box.at[0] + i) * global[1] + box.at[1] + j)];
  return times;
}

TEST(Placement, WithoutCutsEveryRankHoldsAll) {
  EXPECT_EQ(localShape({5, 4}, {}, mesh), (Shape{5, 4}));
  EXPECT_EQ(boxesOf({5, 4}, {}, mesh, std::array<int64_t, 3>{2, 1, 0}),
            (std::vector<Box>{{{0, 0}, {5, 4}}}));
  EXPECT_EQ(boxesOf({}, {}, mesh, std::array<int64_t, 3>{0, 0, 0}), (std::vector<Box>{{{}, {}}}));
}

TEST(Placement, TwoAxesOnOneDimensionAreNested) {
  const Placement placement = {{Shard, 0}, {Tensor, 0}};
  EXPECT_EQ(localShape({5, 4}, placement, mesh), (Shape{2, 4}));
  const auto rows = [&](int64_t shard, int64_t tensor) {
    const auto boxes = boxesOf({5, 4}, placement, mesh, std::array{int64_t{0}, shard, tensor});
    return boxes.empty() ? Shape{} : Shape{boxes[0].at[0], boxes[0].extent[0]};
  };
  EXPECT_EQ(rows(0, 0), (Shape{0, 2}));
  EXPECT_EQ(rows(0, 1), (Shape{2, 1}));
  EXPECT_EQ(rows(1, 0), (Shape{3, 2}));
  EXPECT_EQ(rows(1, 1), Shape{}) << "padding alone";
}

TEST(Placement, ReplicasTogetherHoldEachElementOnce) {
  for (int64_t rows = 1; rows <= 9; ++rows)
    for (const Placement& placement :
         {Placement{{Shard, 0}, {Tensor, 0}}, Placement{{Tensor, 0}, {Shard, 0}},
          Placement{{Shard, 0}, {Tensor, 1}}})
      EXPECT_EQ(coverage({rows, 3}, placement), std::vector<int>(rows * 3, 3)) << rows;
  EXPECT_EQ(coverage({7, 2}, {{Replicate, 0}, {Shard, 0}, {Tensor, 1}}), std::vector<int>(14, 1));
}

TEST(Placement, CutsThatAreNotThereAreRefused) {
  EXPECT_FALSE(localShape({5, 4}, {{3, 0}}, mesh)) << "no such axis";
  EXPECT_FALSE(localShape({5, 4}, {{Shard, 2}}, mesh)) << "no such dimension";
  EXPECT_FALSE(localShape({5, 4}, {{Shard, -1}}, mesh));
  EXPECT_FALSE(localShape({5, 4}, {{Shard, 0}, {Shard, 1}}, mesh)) << "an axis twice";
  EXPECT_FALSE(localShape({6, 4}, {{Shard, 0, 3}}, mesh)) << "groups";
}

} // namespace
} // namespace titan
