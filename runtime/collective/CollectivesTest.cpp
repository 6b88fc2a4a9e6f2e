// Drawn collectives on drawn meshes equal a reference of a few lines, to the bit, on threads, on
// processes and by messages; what moved is what the ledger says. TITAN_TEST_SEED draws others.
#include "runtime/collective/testing/DrawnCollectives.h"
#include "runtime/collective/testing/RunRanks.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

using testing::Ranks;

/// Runs the job in every way; all ranks are well, and all give the same bits.
void expectSameBits(const testing::Drawn& drawn, int threads) {
  const int64_t ranks = rankCount(drawn.mesh);
  const auto body = [&](Communicator& communicator) {
    return testing::runDrawn(drawn, communicator);
  };
  const auto onThreads = testing::runRanks(Ranks::Threads, ranks, threads, body);
  const auto onProcesses = testing::runRanks(Ranks::Processes, ranks, threads, body);
  const auto byMessages = testing::runRanks(Ranks::Messages, ranks, threads, body);
  for (size_t rank = 0; rank < onThreads.size(); ++rank) {
    EXPECT_EQ(onThreads[rank].report.size(), 32u) << onThreads[rank].report;
    EXPECT_EQ(onProcesses[rank].status, 0);
    EXPECT_EQ(onThreads[rank].report, onProcesses[rank].report);
    EXPECT_EQ(onThreads[rank].report, byMessages[rank].report);
  }
}

/// Many rounds through the same windows, of ranks that drift apart.
TEST(Collectives, RoundsDoNotMix) {
  constexpr int64_t ranks = 4, elements = 3 << 20;
  const std::vector<MeshAxis> mesh = {{"shard", ranks}};
  const Collective sum{
      CollectiveKind::AllReduce, SumOrder::Rank, {0}, {{DType::F32, 1, elements}}, "w"};
  // Whole numbers, so the sum is exact; the period of 65521 puts others in each round.
  const auto term = [](int64_t rank, int64_t i, int64_t time) {
    return static_cast<float>(i % 65521 + rank * time);
  };
  const auto run = [&](Communicator& communicator) -> Status {
    testing::StagingRegion staging(elements * 4);
    TITAN_TRY(communicator.setCollectives({&sum, 1}, mesh));
    TITAN_TRY(communicator.shareStaging(staging.bytes()));
    auto* source = reinterpret_cast<float*>(staging.bytes().data());
    std::vector<float> result(elements);
    char* const in = staging.bytes().data();
    char* const out = reinterpret_cast<char*>(result.data());
    for (int64_t time = 0; time < 20; ++time) {
      for (int64_t i = 0; i < elements; ++i)
        source[i] = term(communicator.rank(), i, time);
      Communicator::Ticket ticket;
      TITAN_TRY(communicator.start(0, {&in, 1}, {&out, 1}, ticket));
      TITAN_TRY(communicator.wait(ticket));
      for (int64_t i = 0; i < elements; ++i)
        if (result[static_cast<size_t>(i)] != 4 * term(0, i, 0) + 6 * static_cast<float>(time))
          return Error::internal("time {}, element {}: {}", time, i, result[i]);
    }
    return communicator.finish();
  };
  const auto ends = testing::runRanks(Ranks::Threads, ranks, 1, [&](Communicator& communicator) {
    const Status status = run(communicator);
    if (!status.ok())
      communicator.fail(status.error());
    return status.ok() ? std::string("ok") : status.error().message();
  });
  for (const auto& end : ends)
    EXPECT_EQ(end.report, "ok");
}

TEST(Collectives, DrawnOnesEqualTheReference) {
  const uint64_t seed = testing::seedOfThisRun();
  std::printf("seed %llu (TITAN_TEST_SEED)\n", static_cast<unsigned long long>(seed));
  testing::Drawer drawer(seed);
  for (int job = 0; job < 50 && !::testing::Test::HasFailure(); ++job)
    expectSameBits(drawer.job(20, job % 25 == 0 ? 1000000 : 3000), 1 + job % 2);
}

} // namespace
} // namespace titan
