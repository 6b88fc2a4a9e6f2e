// Ranks that share no memory know of each other's waits, failures and ends.
#include "runtime/collective/mpi/Relay.h"

#include "runtime/collective/Heartbeat.h"

#include <gtest/gtest.h>

#include <future>

#include <sys/socket.h>
#include <unistd.h>

namespace titan {
namespace {

using std::chrono::milliseconds;

/// Both ends of a connection.
std::pair<Socket, Socket> connection() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    std::abort();
  return {Socket(ends[0]), Socket(ends[1])};
}

/// One of two ranks: its block, and its relay once it is started.
struct Rank {
  explicit Rank(int64_t number) : number(number) {
    memory = Mapping::anonymous(ControlBlock::bytesFor(2)).take();
    ControlBlock::initialize(memory.data(), 2, false);
    for (int64_t rank : {0, 1}) {
      slot(rank).pid = 40 + static_cast<int32_t>(rank);
      slot(rank).host.store(FixedText("node" + std::to_string(rank)));
      slot(rank).attached = 1;
    }
  }
  void start(Socket socket, Relay::Options options = {.tells = false, .record = {}, .end = {}}) {
    std::vector<Relay::Link> links;
    links.push_back({1 - number, std::move(socket)});
    relay = Relay::start(block(), number, std::move(links), std::move(options)).take();
  }
  ControlBlock block() const { return ControlBlock(memory); }
  RankSlot& slot(int64_t rank) const { return block().slot(rank); }
  /// Until something holds, which is an event of another thread.
  template <typename Holds> bool wait(Holds&& holds) const {
    for (int i = 0; i < 10000 && !holds(); ++i)
      poll();
    return holds();
  }
  bool fails() const {
    return wait([&] { return block().hasFailed(); });
  }
  static void poll() { usleep(1000); }

  int64_t number;
  Mapping memory;
  std::unique_ptr<Relay> relay;
};

TEST(Relay, MirrorsSlots) {
  Rank first(0), second(1);
  auto [a, b] = connection();
  second.slot(1).waitName.store(FixedText("all_reduce of 0, 2"));
  second.slot(1).waiting = 1;
  second.slot(1).step = 12;
  second.slot(1).beats = 7;
  second.slot(1).waited = 1500;
  first.start(std::move(a));
  second.start(std::move(b));
  EXPECT_TRUE(first.wait([&] { return first.slot(1).waiting != 0; }));
  EXPECT_EQ(first.slot(1).waitName.load(), "all_reduce of 0, 2");
  EXPECT_EQ(first.slot(1).step, 12);
  EXPECT_EQ(first.slot(1).beats, 7u);
  EXPECT_EQ(first.slot(1).waited, 1500);
  first.slot(0).step = 13;
  EXPECT_TRUE(second.wait([&] { return second.slot(0).step == 13; }));
  second.slot(1).finished = 1; // so they part in peace
  second.relay.reset();
  EXPECT_TRUE(first.wait([&] { return first.slot(1).finished != 0; }));
  first.relay.reset();
  EXPECT_FALSE(first.block().hasFailed());
  EXPECT_FALSE(second.block().hasFailed());
}

TEST(Relay, CarriesAFailureToTheOthers) {
  for (int64_t failing : {0, 1}) {
    Rank first(0), second(1);
    auto [a, b] = connection();
    first.start(std::move(a));
    second.start(std::move(b));
    Rank& one = failing == 0 ? first : second;
    Rank& other = failing == 0 ? second : first;
    one.block().fail({.code = 3, .rank = failing, .told = true, .message = "the disk is full"});
    one.relay.reset(); // it may end at once
    ASSERT_TRUE(other.fails());
    EXPECT_EQ(other.block().failure()->code, 3);
    EXPECT_EQ(other.block().failure()->rank, failing);
    EXPECT_TRUE(other.block().failure()->told);
    EXPECT_EQ(other.block().failure()->message, "the disk is full");
  }
}

TEST(Relay, TellsOnceWhoIsLostAndWhoWaited) {
  ::testing::internal::CaptureStderr();
  {
    Rank first(0);
    auto [a, b] = connection();
    first.slot(1).step = 3;
    first.slot(0).waitName.store(FixedText("all_reduce of 0, 2"));
    first.slot(0).waiting = 1;
    first.start(std::move(a), {.tells = true, .record = {}, .end = {}});
    b = Socket(); // lost without a word
    ASSERT_TRUE(first.fails());
    EXPECT_EQ(first.block().failure()->code, 5);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "error: rank 1 (pid 41 on node1) was lost in step 3: its connection was closed; rank 0 "
            "waited at 'all_reduce of 0, 2'\n");
}

TEST(Relay, RefusesNoise) {
  Rank first(0);
  auto [a, b] = connection();
  first.start(std::move(a));
  const std::string noise(1 << 16, '\x5a');
  EXPECT_GT(write(b.number(), noise.data(), noise.size()), 0);
  ASSERT_TRUE(first.fails());
  EXPECT_EQ(first.block().failure()->message, "rank 1 (pid 41 on node1) was lost: it sends "
                                              "something else than messages of ranks");
}

/// A peer that takes nothing does not stop the relay, and nothing piles up.
TEST(Relay, DoesNotWaitForASlowPeer) {
  Rank first(0);
  auto [a, b] = connection();
  const int bytes = 4096;
  setsockopt(a.number(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  first.start(std::move(a));
  std::string held(1 << 16, ' ');
  EXPECT_TRUE(first.wait([&] { // its buffers are full
    return recv(b.number(), held.data(), held.size(), MSG_PEEK) >= 2048;
  }));
  first.block().fail({.code = 5, .rank = 0, .told = true, .message = "later"});
  first.relay.reset();
  EXPECT_TRUE(first.block().hasFailed());
}

TEST(Relay, ARankThatDoesNotBeatIsNamed) {
  Rank first(0);
  auto [a, b] = connection();
  first.start(std::move(a)); // and b is silent: its host has stopped, or the link is cut
  auto heartbeat = Heartbeat::start(first.block(), 0, {}).take();
  ASSERT_TRUE(first.fails());
  EXPECT_EQ(first.block().failure()->message,
            "rank 1 (pid 41 on node1) gave no sign of life for 5 s");
}

TEST(Relay, EndsAProcessThatHangs) {
  Rank first(0);
  auto [a, b] = connection();
  std::promise<int> ended;
  std::atomic<bool> isEnded{false};
  first.start(std::move(a), {.tells = false,
                             .record = {},
                             .end =
                                 [&](int code) {
                                   if (!isEnded.exchange(true))
                                     ended.set_value(code);
                                 },
                             .timeToEnd = milliseconds(50)});
  b = Socket();
  auto code = ended.get_future(); // its own thread hangs in MPI, and does not look
  ASSERT_EQ(code.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(code.get(), 5);
}

} // namespace
} // namespace titan
