#include "runtime/program/AttentionNeeds.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

constexpr int64_t mebibyte = int64_t{1} << 20;

/// Of `heads` heads of 64, `shared` of which share keys.
Attention gradient(int64_t batch, int64_t heads, int64_t shared, int64_t rows) {
  Attention a;
  a.batch = batch, a.heads = heads, a.keyHeads = heads / shared;
  a.queries = a.keys = rows;
  a.width = a.valueWidth = 64;
  a.backward = true;
  return a;
}

TEST(AttentionNeeds, AGradientKeepsScoresAsPaddedTiles) {
  const Attention a = gradient(2, 4, 1, 100);
  EXPECT_EQ(attentionWorkspace(a, 2), 2 * 2 * 4 * 128 * 128 + 4 * 2 * 4 * 100 + mebibyte);
  EXPECT_EQ(attentionWorkspace(a, 1), 1 * 2 * 4 * 128 * 128 + 4 * 1 * 4 * 100 + mebibyte);
  Attention forward = a;
  forward.backward = false;
  EXPECT_EQ(attentionWorkspace(forward, 2), mebibyte);
}

TEST(AttentionNeeds, HeadsThatShareKeysHaveAdjointsOfTheirOwn) {
  const int64_t alone = attentionWorkspace(gradient(2, 8, 1, 256), 2);
  EXPECT_EQ(attentionWorkspace(gradient(2, 8, 4, 256), 2), alone + 2 * 2 * 8 * 256 * (64 + 64));
}

TEST(AttentionNeeds, ABatchIsCutIntoEqualParts) {
  const Attention a = gradient(12, 4, 1, 128);
  const int64_t six = attentionWorkspace(a, 6);
  EXPECT_EQ(batchesAtOnce(a, attentionWorkspace(a, 12)), 12);
  EXPECT_EQ(batchesAtOnce(a, attentionWorkspace(a, 12) - 1), 6);
  EXPECT_EQ(batchesAtOnce(a, six), 6);
  EXPECT_EQ(batchesAtOnce(a, six - 1), 4);
  EXPECT_EQ(batchesAtOnce(a, 0), 1);
}

TEST(AttentionNeeds, WhatIsPlannedIsAGibibyteOrOneBatch) {
  // GPT-2 124M: 32 of 64 batches at once.
  const Attention gpt = gradient(64, 12, 1, 1024);
  EXPECT_EQ(plannedAttentionWorkspace(gpt), attentionWorkspace(gpt, 32));
  EXPECT_EQ(batchesAtOnce(gpt, plannedAttentionWorkspace(gpt)), 32);
  const Attention longer = gradient(2, 16, 1, 8192);
  EXPECT_EQ(plannedAttentionWorkspace(longer), attentionWorkspace(longer, 1));
  EXPECT_EQ(plannedAttentionWorkspace(gradient(1, 32, 1, 32768)), 0);
}

} // namespace
} // namespace titan
