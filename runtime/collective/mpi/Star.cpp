#include "runtime/collective/mpi/Star.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

namespace titan {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds timeToShow{5000};  // the token, once connected
constexpr milliseconds timeToReach{2000}; // one address
constexpr milliseconds timeToRetry{100};  // after all of them
constexpr size_t mostStrangers = 64;      // connected, and have not shown the token yet
constexpr int lostAfter = 5000;           // milliseconds without an acknowledgement

/// What a rank shows.
struct Hello {
  char magic[8] = {'T', 'I', 'T', 'A', 'N', 'H', 'E', 'Y'};
  StarToken token{};
  uint32_t rank = 0;
  uint32_t ranksAre32Bits = 32;
};
static_assert(sizeof(Hello) == 32);

/// In a time that says nothing of how much is equal.
bool areEqual(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<uint8_t>(a[i] ^ b[i]);
  return difference == 0;
}

void set(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

/// A peer that is gone without a word is an error of the connection soon.
void watchConnection(int socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, lostAfter);
}

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

SocketAddress socketAddress(const StarInvitation::Address& address, uint16_t port) {
  SocketAddress to;
  if (address.family == AF_INET) {
    auto* in = reinterpret_cast<sockaddr_in*>(&to.storage);
    in->sin_family = AF_INET;
    in->sin_port = htons(port);
    std::memcpy(&in->sin_addr, address.bytes.data(), sizeof in->sin_addr);
    to.size = sizeof *in;
  } else {
    auto* in = reinterpret_cast<sockaddr_in6*>(&to.storage);
    in->sin6_family = AF_INET6;
    in->sin6_port = htons(port);
    std::memcpy(&in->sin6_addr, address.bytes.data(), sizeof in->sin6_addr);
    to.size = sizeof *in;
  }
  return to;
}

std::string textOf(const StarInvitation::Address& address, uint16_t port) {
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(address.family, address.bytes.data(), text, sizeof text);
  return address.family == AF_INET ? fmt::format("{}:{}", text, port)
                                   : fmt::format("[{}]:{}", text, port);
}

/// The addresses of this host that others may reach.
void addAddresses(StarInvitation& invitation) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0)
    return;
  for (const ifaddrs* each = all; each; each = each->ifa_next) {
    if (!each->ifa_addr || (each->ifa_flags & IFF_UP) == 0 ||
        (each->ifa_flags & IFF_LOOPBACK) != 0 ||
        invitation.addresses == StarInvitation::mostAddresses)
      continue;
    StarInvitation::Address address;
    address.family = each->ifa_addr->sa_family;
    if (address.family == AF_INET) {
      const auto* in = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
      std::memcpy(address.bytes.data(), &in->sin_addr, sizeof in->sin_addr);
    } else if (address.family == AF_INET6) {
      const auto* in = reinterpret_cast<const sockaddr_in6*>(each->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&in->sin6_addr)) // means nothing on another host
        continue;
      std::memcpy(address.bytes.data(), &in->sin6_addr, sizeof in->sin6_addr);
    } else {
      continue;
    }
    invitation.at[invitation.addresses++] = address;
  }
  freeifaddrs(all);
}

int millisecondsUntil(Clock::time_point time) {
  const auto left = std::chrono::duration_cast<milliseconds>(time - Clock::now()).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

/// `size` bytes of a socket that does not block, by `end`. 0 or an errno.
int readAll(int socket, void* bytes, size_t size, Clock::time_point end) {
  for (size_t at = 0; at < size;) {
    const ssize_t got = read(socket, static_cast<char*>(bytes) + at, size - at);
    if (got > 0) {
      at += static_cast<size_t>(got);
      continue;
    }
    if (got == 0)
      return ECONNRESET;
    if (errno != EAGAIN && errno != EINTR)
      return errno;
    pollfd ready = {.fd = socket, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, millisecondsUntil(end)) == 0)
      return ETIMEDOUT;
  }
  return 0;
}

} // namespace

Socket::~Socket() {
  if (number_ >= 0)
    close(number_);
}

Result<StarCenter> StarCenter::listen(bool onThisHost) {
  StarCenter center;
  StarInvitation& invitation = center.invitation_;
  const auto failed = [] {
    return Error::environment("cannot listen for the other ranks: {}", std::strerror(errno));
  };
  if (getrandom(&invitation.token, sizeof invitation.token, 0) != sizeof invitation.token ||
      getrandom(&invitation.answer, sizeof invitation.answer, 0) != sizeof invitation.answer)
    return failed();
  StarInvitation::Address any;
  any.family = AF_INET;
  if (onThisHost) {
    any.bytes = {127, 0, 0, 1};
    invitation.at[invitation.addresses++] = any;
  } else {
    addAddresses(invitation);
    for (const StarInvitation::Address& address : invitation.at)
      if (address.family == AF_INET6)
        any.family = AF_INET6;
  }
  center.listener_ = Socket(socket(any.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int number = center.listener_.number();
  if (number < 0)
    return failed();
  if (any.family == AF_INET6)
    set(number, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  SocketAddress at = socketAddress(any, 0);
  if (bind(number, at.get(), at.size) != 0 || ::listen(number, SOMAXCONN) != 0 ||
      getsockname(number, reinterpret_cast<sockaddr*>(&at.storage), &at.size) != 0)
    return failed();
  invitation.port =
      ntohs(any.family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&at.storage)->sin6_port
                                   : reinterpret_cast<sockaddr_in*>(&at.storage)->sin_port);
  return center;
}

namespace {

/// Somebody who has connected, and may be a rank.
struct Stranger {
  Socket socket;
  Clock::time_point until;
  size_t size = 0;
  Hello hello{};

  enum class Verdict { Unknown, IsRank, Wrong };
  Verdict look(const StarToken& token, int64_t ranks) {
    const ssize_t got =
        read(socket.number(), reinterpret_cast<char*>(&hello) + size, sizeof hello - size);
    if (got <= 0)
      return got < 0 && (errno == EAGAIN || errno == EINTR) ? Verdict::Unknown : Verdict::Wrong;
    size += static_cast<size_t>(got);
    if (size < sizeof hello)
      return Verdict::Unknown;
    const Hello expected;
    const bool isRank = std::memcmp(hello.magic, expected.magic, sizeof hello.magic) == 0 &&
                        areEqual(hello.token, token) && hello.rank > 0 && hello.rank < ranks;
    return isRank ? Verdict::IsRank : Verdict::Wrong;
  }
};

} // namespace

Result<std::vector<Socket>> StarCenter::accept(int64_t ranks, milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  std::vector<Socket> joined(static_cast<size_t>(ranks));
  std::vector<Stranger> strangers;
  const auto missing = [&] {
    std::vector<size_t> list;
    for (size_t rank = 1; rank < joined.size(); ++rank)
      if (!joined[rank].isOpen())
        list.push_back(rank);
    return list;
  };
  while (!missing().empty()) {
    if (Clock::now() >= end)
      return Error::environment("rank{} {} did not connect to rank 0 within {} s: let TCP through "
                                "between the hosts",
                                missing().size() == 1 ? "" : "s", fmt::join(missing(), ", "),
                                std::chrono::duration_cast<std::chrono::seconds>(limit).count());
    std::vector<pollfd> files = {{.fd = listener_.number(), .events = POLLIN, .revents = 0}};
    for (const Stranger& stranger : strangers)
      files.push_back({.fd = stranger.socket.number(), .events = POLLIN, .revents = 0});
    poll(files.data(), files.size(), std::min(millisecondsUntil(end), 100));
    std::erase_if(strangers, [&](Stranger& stranger) {
      switch (stranger.look(invitation_.token, ranks)) {
      case Stranger::Verdict::Unknown:
        return Clock::now() >= stranger.until;
      case Stranger::Verdict::Wrong:
        return true;
      case Stranger::Verdict::IsRank:
        break;
      }
      const int socket = stranger.socket.number();
      Socket& place = joined[stranger.hello.rank];
      // Some bytes always fit in a new connection.
      if (!place.isOpen() && send(socket, invitation_.answer.data(), invitation_.answer.size(),
                                  MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(StarToken)))
        place = std::move(stranger.socket);
      return true;
    });
    for (;;) {
      Socket next(accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!next.isOpen())
        break;
      watchConnection(next.number());
      if (strangers.size() == mostStrangers) // a rank among them tries again
        strangers.erase(strangers.begin());
      strangers.push_back({std::move(next), Clock::now() + timeToShow, 0, {}});
    }
  }
  listener_ = Socket();
  return joined;
}

namespace {

/// 0 and a connection that has shown and seen the tokens, or an errno.
int reach(const StarInvitation& invitation, const StarInvitation::Address& address, int64_t rank,
          Socket& connection) {
  Socket to(socket(address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!to.isOpen())
    return errno;
  const SocketAddress at = socketAddress(address, invitation.port);
  const Clock::time_point end = Clock::now() + timeToReach;
  if (connect(to.number(), at.get(), at.size) != 0) {
    if (errno != EINPROGRESS)
      return errno;
    pollfd ready = {.fd = to.number(), .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, millisecondsUntil(end)) == 0)
      return ETIMEDOUT;
    int code = 0;
    socklen_t size = sizeof code;
    getsockopt(to.number(), SOL_SOCKET, SO_ERROR, &code, &size);
    if (code != 0)
      return code;
  }
  watchConnection(to.number());
  Hello hello;
  hello.token = invitation.token;
  hello.rank = static_cast<uint32_t>(rank);
  if (send(to.number(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
    return errno;
  StarToken answer;
  if (const int code = readAll(to.number(), &answer, sizeof answer, Clock::now() + timeToShow))
    return code;
  if (!areEqual(answer, invitation.answer))
    return EPROTO;
  connection = std::move(to);
  return 0;
}

} // namespace

Result<Socket> joinStar(const StarInvitation& invitation, int64_t rank, milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  const std::span<const StarInvitation::Address> all(invitation.at.data(), invitation.addresses);
  int code = EHOSTUNREACH;
  for (;;) {
    for (const StarInvitation::Address& address : all) {
      Socket connection;
      code = reach(invitation, address, rank, connection);
      if (code == 0)
        return connection;
    }
    if (Clock::now() + timeToRetry >= end)
      break;
    poll(nullptr, 0, static_cast<int>(timeToRetry.count()));
  }
  std::vector<std::string> texts;
  for (const StarInvitation::Address& address : all)
    texts.push_back(textOf(address, invitation.port));
  return Error::environment("cannot reach rank 0 at {}: {}", fmt::join(texts, ", "),
                            std::strerror(code));
}

} // namespace titan
