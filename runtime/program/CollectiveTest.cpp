#include "runtime/program/Collective.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

using Ranks = std::vector<int64_t>;
const std::vector<MeshAxis> mesh = {{"replicate", 2}, {"shard", 3}, {"tensor", 2}};

TEST(Collective, RanksAreNumberedRowMajor) {
  EXPECT_EQ(rankCount(mesh), 12);
  EXPECT_EQ(coordinatesOf(0, mesh), (Ranks{0, 0, 0}));
  EXPECT_EQ(coordinatesOf(7, mesh), (Ranks{1, 0, 1}));
  EXPECT_EQ(coordinatesOf(11, mesh), (Ranks{1, 2, 1}));
}

TEST(Collective, GroupDiffersOnItsAxesOnly) {
  const std::vector<uint8_t> replicate = {0}, shard = {1}, both = {0, 1}, outer = {0, 2};
  EXPECT_EQ(groupOf(7, replicate, mesh), (Ranks{1, 7}));
  EXPECT_EQ(groupOf(7, shard, mesh), (Ranks{7, 9, 11}));
  EXPECT_EQ(groupOf(7, both, mesh), (Ranks{1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(groupOf(2, outer, mesh), (Ranks{2, 3, 8, 9}));
  EXPECT_EQ(groupSize(both, mesh), 6);
}

/// Every rank of a group sees the same group, and the groups divide the ranks.
TEST(Collective, GroupsPartitionTheRanks) {
  const std::vector<uint8_t> axes = {0, 2};
  std::vector<int> seen(12);
  for (int64_t rank = 0; rank < 12; ++rank)
    for (int64_t member : groupOf(rank, axes, mesh)) {
      EXPECT_EQ(groupOf(member, axes, mesh), groupOf(rank, axes, mesh));
      ++seen[static_cast<size_t>(member)];
    }
  EXPECT_EQ(seen, std::vector<int>(12, 4));
}

TEST(Collective, BytesOfEachKind) {
  // 24 rows of 5: 480 bytes of f32, and a count of 8 bytes.
  const CollectivePiece rows{DType::F32, 1, 120}, count{DType::I64, 1, 1};
  Collective gather{CollectiveKind::AllGather, SumOrder::Rank, {1}, {rows}, "w"};
  EXPECT_EQ(payloadBytes(gather, 4), 120);
  EXPECT_EQ(resultBytes(gather.kind, rows, 4), 480);
  EXPECT_EQ(wireBytes(gather, 4), 360);
  Collective scatter{CollectiveKind::ReduceScatter, SumOrder::Rank, {1}, {rows}, "w"};
  EXPECT_EQ(payloadBytes(scatter, 4), 480);
  EXPECT_EQ(resultBytes(scatter.kind, rows, 4), 120);
  EXPECT_EQ(wireBytes(scatter, 4), 360);
  Collective reduce{CollectiveKind::AllReduce, SumOrder::Rank, {1}, {rows, count}, "w"};
  EXPECT_EQ(payloadBytes(reduce, 4), 488);
  EXPECT_EQ(wireBytes(reduce, 4), 732);
  EXPECT_EQ(wireBytes(reduce, 3), 651); // 2 * 488 * 2 / 3, rounded up
}

TEST(Collective, RanksAreDescribedByTheirAxes) {
  const std::vector<MeshAxis> one = {{"replicate", 1}}, four = {{"replicate", 2}, {"shard", 2}};
  EXPECT_EQ(describeRanks(one), "1 rank");
  EXPECT_EQ(describeRanks({}), "1 rank");
  EXPECT_EQ(describeRanks(four), "4 ranks (replicate 2 x shard 2)");
}

} // namespace
} // namespace titan
