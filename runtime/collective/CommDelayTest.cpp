// A delay makes every backend's collectives as slow as it says.
#include "runtime/collective/CommDelay.h"

#include "runtime/collective/InProcess.h"
#include "runtime/collective/Null.h"
#include "runtime/collective/SharedMemory.h"
#include "runtime/collective/testing/RunRanks.h"

#include <gtest/gtest.h>

#include <thread>

#include <unistd.h>

namespace titan {
namespace {

TEST(CommDelay, ReadsLatencyAndRate) {
  const auto read = [](std::string_view text) {
    const CommDelay delay = parseCommDelay(text).take();
    return std::pair(delay.latency, delay.bytesPerSecond);
  };
  EXPECT_EQ(read("50us,2GB/s"), std::pair(int64_t{50000}, 2e9));
  EXPECT_EQ(read("0s,1B/s"), std::pair(int64_t{0}, 1.0));
  EXPECT_EQ(read("1.5ms,0.5MB/s"), std::pair(int64_t{1500000}, 5e5));
  EXPECT_EQ(read("7ns,3kB/s"), std::pair(int64_t{7}, 3e3));
  EXPECT_TRUE(CommDelay().isNone());
  EXPECT_FALSE(parseCommDelay("0s,1GB/s").take().isNone());
}

TEST(CommDelay, RefusesWhatIsNone) {
  for (const char* text :
       {"", "50us", "50,2GB/s", "50us,2GB", "50us,2", "-1us,2GB/s", "nanus,2GB/s", "50us,infGB/s",
        "50us,0GB/s", "50us,2GB/s,", "50us, 2GB/s", "2GB/s,50us", "2h,2GB/s", "4000s,1GB/s"}) {
    const Result<CommDelay> delay = parseCommDelay(text);
    ASSERT_FALSE(delay.ok()) << text;
    EXPECT_EQ(delay.error().exitCode(), 2);
    EXPECT_EQ(
        delay.error().message(),
        fmt::format("TITAN_COMM_DELAY = '{}' is no latency and rate: write 50us,2GB/s", text));
  }
}

TEST(CommDelay, IsLatencyAndTransfer) {
  EXPECT_EQ(parseCommDelay("50us,2GB/s")->nanoseconds(2000000), 1050000);
  EXPECT_EQ(CommDelay().nanoseconds(1000), 0);
}

const std::vector<MeshAxis> mesh = {{"shard", 2}};
constexpr int64_t elements = 1000; // f32

/// One collective of each kind; each lasts at least as long as `delay` says of its wire.
std::string runAll(Communicator& communicator, const CommDelay& delay) {
  std::vector<Collective> collectives;
  for (const CollectiveKind kind :
       {CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllReduce})
    collectives.push_back({kind, SumOrder::Rank, {0}, {{DType::F32, 1, elements}}, "w"});
  testing::StagingRegion staging(elements * 4);
  Status status = communicator.setCollectives(collectives, mesh);
  if (status.ok())
    status = communicator.shareStaging(staging.bytes());
  std::vector<float> result(elements);
  char* const in = staging.bytes().data();
  char* const out = reinterpret_cast<char*>(result.data());
  for (uint32_t i = 0; status.ok() && i < collectives.size(); ++i) {
    Communicator::Ticket ticket;
    const int64_t before = monotonicNow();
    status = communicator.start(i, {&in, 1}, {&out, 1}, ticket);
    if (status.ok())
      status = communicator.wait(ticket);
    if (status.ok() && monotonicNow() - before < delay.nanoseconds(wireBytes(collectives[i], 2)))
      status = Error::internal("{} is too fast", toString(collectives[i].kind));
  }
  if (status.ok())
    status = communicator.finish();
  return status.ok() ? "ok" : status.error().message();
}

TEST(CommDelay, SlowsEveryBackendDown) {
  const CommDelay delay = parseCommDelay("2ms,1MB/s").take(); // 2 ms + 2, 2 and 4 ms
  std::string other;
  auto threads = connectInProcess(2, {}, delay).take();
  std::thread second([&] { other = runAll(*threads[1], delay); });
  EXPECT_EQ(runAll(*threads[0], delay), "ok");
  second.join();
  EXPECT_EQ(other, "ok");

  EXPECT_EQ(runAll(*connectNull(1, 2, delay), delay), "ok");

  const int file = createControlFile(2, false).take();
  auto first = connectSharedMemory(file, 0, 2, {.delay = delay}).take();
  auto last = connectSharedMemory(file, 1, 2, {.delay = delay}).take();
  std::thread process([&] { other = runAll(*last, delay); });
  EXPECT_EQ(runAll(*first, delay), "ok");
  process.join();
  EXPECT_EQ(other, "ok");
  close(file);
}

} // namespace
} // namespace titan
