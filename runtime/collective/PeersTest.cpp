#include "runtime/collective/Peers.h"

#include "runtime/collective/testing/RankThreads.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

using titan::testing::onRanks;

TEST(Peers, AloneGetsBackWhatItBrings) {
  Peers peers;
  EXPECT_TRUE(peers.isAlone() && peers.isFirst());
  EXPECT_EQ(peers.exchange("a test", "mine").take(), std::vector<std::string>{"mine"});
  EXPECT_EQ(peers.fromFirst("a test", int64_t{7}).take(), 7);
  EXPECT_EQ(peers.agree("a test", Result<int>(3)).take(), 3);
  EXPECT_EQ(peers.agree("a test", Status(Error::badInput("no"))).error().message(), "no");
  EXPECT_EQ(peers.byFirst("a test", [] { return Result<int>(4); }).take(), 4);
  EXPECT_EQ(peers.end({}), 0);
}

TEST(Peers, AFailureOfOneIsTheErrorOfAllAndNamed) {
  const auto errors = onRanks(3, [](Peers& peers) {
    Status mine = peers.rank() == 1 ? Status(Error::badInput("cannot open 'x'")) : Status();
    Status verdict = peers.agree("a test", std::move(mine));
    return std::pair(verdict.error().code(), verdict.error().message());
  });
  for (const auto& [code, message] : errors) {
    EXPECT_EQ(code, ErrorCode::BadInput);
    EXPECT_EQ(message, "rank 1: cannot open 'x'");
  }
}

TEST(Peers, AFailureOfAllNamesNobody) {
  for (const std::string& message : onRanks(3, [](Peers& peers) {
         return peers.agree("a test", Result<int>(Error::badInput("no data"))).error().message();
       }))
    EXPECT_EQ(message, "no data");
}

TEST(Peers, OfSeveralFailuresTheLowestRanksCounts) {
  for (const std::string& message : onRanks(3, [](Peers& peers) {
         Status mine;
         if (peers.rank() > 0)
           mine = Error::badInput("reason {}", peers.rank());
         return peers.agree("a test", std::move(mine)).error().message();
       }))
    EXPECT_EQ(message, "rank 1: reason 1");
}

TEST(Peers, GatherWhatEachBringsOrTheErrorOfOne) {
  for (const auto& all : onRanks(3, [](Peers& peers) {
         return peers.gather("a test", fmt::format("of {}", peers.rank())).take();
       }))
    EXPECT_EQ(all, (std::vector<std::string>{"of 0", "of 1", "of 2"}));
  for (const std::string& message : onRanks(3, [](Peers& peers) {
         Result<std::string> mine = std::string("fine");
         if (peers.rank() == 2)
           mine = Error::runFailed("disk full");
         return peers.gather("a test", std::move(mine)).error().message();
       }))
    EXPECT_EQ(message, "rank 2: disk full");
  Peers alone;
  EXPECT_EQ(alone.gather("a test", std::string("x")).take(), std::vector<std::string>{"x"});
}

TEST(Peers, BroadcastTheBytesOfOne) {
  for (const std::string& bytes : onRanks(3, [](Peers& peers) {
         std::string bytes = fmt::format("of {}", peers.rank());
         EXPECT_TRUE(peers.broadcast("a test", 1, bytes).ok());
         return bytes;
       }))
    EXPECT_EQ(bytes, "of 1");
}

TEST(Peers, WhatTheFirstDoesCountsForAll) {
  const auto results = onRanks(2, [](Peers& peers) {
    const int done = peers.byFirst("a test", [] { return Result<int>(5); }).take();
    const auto failed =
        peers.byFirst("a test", [] { return Result<int>(Error::runFailed("disk full")); });
    return std::pair(done, failed.error().message());
  });
  EXPECT_EQ(results[0].first, 5);
  EXPECT_EQ(results[1].first, 0);
  for (const auto& [done, message] : results)
    EXPECT_EQ(message, "disk full");
}

TEST(Peers, AnErrorOfAllIsPrintedOnce) {
  ::testing::internal::CaptureStderr();
  for (int code : onRanks(2, [](Peers& peers) {
         return peers.end(peers.together(Status(Error::usage("no such key"))));
       }))
    EXPECT_EQ(code, 2);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "error: no such key\n");
}

TEST(Peers, AnErrorOfOneIsPrintedByItAndEndsTheOthers) {
  ::testing::internal::CaptureStderr();
  const auto codes = onRanks(3, [](Peers& peers) {
    if (peers.rank() == 2)
      return peers.end(Error::badInput("label 9 is not in [0, 5)"));
    return peers.end(peers.exchange("a wait", "").error());
  });
  EXPECT_EQ(codes, (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "error: label 9 is not in [0, 5)\n");
}

TEST(Peers, AllEndInOrder) {
  EXPECT_EQ(onRanks(2, [](Peers& peers) { return peers.end({}); }), (std::vector<int>{0, 0}));
}

} // namespace
} // namespace titan
