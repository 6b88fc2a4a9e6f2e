// Ranks find rank 0 among strangers, noise and floods.
#include "runtime/collective/mpi/Star.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace titan {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A connection that shows nothing by itself.
Socket connectTo(const StarInvitation& invitation) {
  Socket connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(invitation.port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(connection.number(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
    return Socket();
  return connection;
}

/// Waits until the other side has closed; what it sent before does not count.
bool isClosed(const Socket& connection) {
  for (;;) {
    pollfd ready = {.fd = connection.number(), .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, 10000) <= 0)
      return false;
    char bytes[64];
    if (read(connection.number(), bytes, sizeof bytes) <= 0)
      return true;
  }
}

/// Rank 0 of three, which accepts on a thread of its own.
class Star : public ::testing::Test {
protected:
  void SetUp() override {
    center_.emplace(StarCenter::listen(/*onThisHost=*/true).take());
    invitation_ = center_->invitation();
    thread_ = std::thread([this] { sockets_.emplace(center_->accept(3, seconds(20))); });
  }
  void TearDown() override {
    if (thread_.joinable())
      thread_.join();
  }
  Result<Socket> join(int64_t rank) { return joinStar(invitation_, rank, seconds(10)); }
  /// Both ranks join, and the connections are theirs.
  void expectThatRanksJoin() {
    Socket second = join(2).take(), first = join(1).take();
    thread_.join();
    ASSERT_TRUE(sockets_->ok()) << sockets_->error().message();
    EXPECT_EQ(write(first.number(), "1", 1), 1);
    EXPECT_EQ(write(second.number(), "2", 1), 1);
    for (size_t rank : {1, 2}) {
      pollfd ready = {.fd = (**sockets_)[rank].number(), .events = POLLIN, .revents = 0};
      ASSERT_EQ(poll(&ready, 1, 10000), 1);
      char byte = 0;
      EXPECT_EQ(read((**sockets_)[rank].number(), &byte, 1), 1);
      EXPECT_EQ(byte, static_cast<char>('0' + rank));
    }
    EXPECT_FALSE(connectTo(invitation_).isOpen()); // nobody listens any more
  }

  std::optional<StarCenter> center_;
  StarInvitation invitation_;
  std::optional<Result<std::vector<Socket>>> sockets_;
  std::thread thread_;
};

TEST_F(Star, ConnectsRanks) { expectThatRanksJoin(); }

TEST_F(Star, ClosesStrangers) {
  const Socket silent = connectTo(invitation_);
  const Socket noisy = connectTo(invitation_);
  const std::string noise(1 << 20, '\x5a');
  send(noisy.number(), noise.data(), noise.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  EXPECT_TRUE(isClosed(noisy));
  StarInvitation wrong = invitation_;
  wrong.token[3] ^= 1;
  const Result<Socket> guessed = joinStar(wrong, 1, milliseconds(50));
  ASSERT_FALSE(guessed.ok());
  EXPECT_EQ(guessed.error().message(),
            "cannot reach rank 0 at 127.0.0.1:" + std::to_string(invitation_.port) +
                ": Connection reset by peer");
  // A rank that is none of the job, and one that is there already.
  EXPECT_FALSE(joinStar(invitation_, 3, milliseconds(50)).ok());
  const Socket first = join(1).take();
  EXPECT_FALSE(joinStar(invitation_, 1, milliseconds(50)).ok());
  const Socket second = join(2).take();
  thread_.join();
  EXPECT_TRUE(sockets_->ok());
}

TEST_F(Star, StandsAFlood) {
  std::vector<Socket> flood;
  for (int i = 0; i < 300; ++i)
    flood.push_back(connectTo(invitation_));
  expectThatRanksJoin();
}

TEST_F(Star, DoesNotGoOnWithAnotherThanRank0) {
  StarInvitation other = invitation_;
  other.answer[0] ^= 1;
  const Result<Socket> joined = joinStar(other, 1, milliseconds(0));
  ASSERT_FALSE(joined.ok());
  EXPECT_NE(joined.error().message().find("Protocol error"), std::string::npos)
      << joined.error().message();
  // That connection counts as rank 1's.
  const Socket second = join(2).take();
  thread_.join();
}

TEST(StarCenter, NamesTheRanksThatDoNotCome) {
  StarCenter center = StarCenter::listen(true).take();
  const auto joined = center.accept(3, seconds(1));
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().message(), "ranks 1, 2 did not connect to rank 0 within 1 s: let TCP "
                                      "through between the hosts");
}

TEST(StarCenter, TellsOtherHostsItsAddresses) {
  const StarCenter center = StarCenter::listen(/*onThisHost=*/false).take();
  for (size_t i = 0; i < center.invitation().addresses; ++i)
    EXPECT_NE(center.invitation().at[i].bytes[0], 127);
}

} // namespace
} // namespace titan
