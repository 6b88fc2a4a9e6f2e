// Collectives allocate nothing, on any thread that takes part.
#include "runtime/collective/testing/RunRanks.h"
#include "runtime/host/testing/Allocations.h"

#include <gtest/gtest.h>

namespace titan {
namespace {

TEST(Collectives, AllocateNothing) {
  constexpr int64_t elements = 1 << 19; // several rounds, and both threads
  const std::vector<MeshAxis> mesh = {{"replicate", 2}};
  std::vector<Collective> collectives;
  for (const CollectiveKind kind :
       {CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllReduce})
    collectives.push_back({kind, SumOrder::Rank, {0}, {{DType::F32, 1, elements}}, "w"});
  const auto run = [&](Communicator& communicator) -> Status {
    testing::StagingRegion staging(elements * 4);
    TITAN_TRY(communicator.setCollectives(collectives, mesh));
    TITAN_TRY(communicator.shareStaging(staging.bytes()));
    std::vector<float> result(elements);
    char* const in = staging.bytes().data();
    char* const out = reinterpret_cast<char*>(result.data());
    std::vector<std::string> all;
    TITAN_TRY(communicator.exchange("begin", "", all));
    // In the first and the last round the other rank may be in an exchange, which allocates.
    for (uint32_t i = 0; i < 9; ++i) {
      const int64_t before = testing::allocations();
      Communicator::Ticket ticket;
      TITAN_TRY(communicator.start(i % 3, {&in, 1}, {&out, 1}, ticket));
      TITAN_TRY(communicator.wait(ticket));
      if (i / 3 == 1 && testing::allocations() != before)
        return Error::internal("{} allocated", toString(collectives[i % 3].kind));
    }
    return communicator.finish();
  };
  const auto ends =
      testing::runRanks(testing::Ranks::Threads, 2, 2, [&](Communicator& communicator) {
        const Status status = run(communicator);
        if (!status.ok())
          communicator.fail(status.error());
        return status.ok() ? std::string("ok") : status.error().message();
      });
  EXPECT_EQ(ends[0].report, "ok");
  EXPECT_EQ(ends[1].report, "ok");
}

} // namespace
} // namespace titan
