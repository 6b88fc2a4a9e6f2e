#include "runtime/collective/mpi/Hosts.h"

#include "runtime/collective/mpi/Star.h"

#include <cstring>
#include <fstream>

#include <unistd.h>

namespace titan {
namespace {

constexpr std::chrono::seconds timeToConnect{30};

/// What rank 0 sends to all: where it listens, or why it does not.
struct Announcement {
  StarInvitation invitation;
  char error[256];
};

} // namespace

Hosts::Fact Hosts::mine() {
  Fact fact{};
  gethostname(fact.name, sizeof fact.name - 1);
  fact.pid = getpid();
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  char space[64] = "";
  if (readlink("/proc/self/ns/net", space, sizeof space - 1) < 0)
    std::memcpy(space, fact.name, sizeof space);
  boot += space;
  std::memcpy(fact.network, boot.data(), std::min(boot.size(), sizeof fact.network - 1));
  return fact;
}

Result<Hosts> Hosts::gather(Operations& operations, int64_t rank, int64_t ranks) {
  Hosts hosts;
  hosts.facts_.resize(static_cast<size_t>(ranks));
  const Fact fact = mine();
  TITAN_TRY(operations.enter(FixedText("the hosts of the ranks")));
  TITAN_TRY(operations.allGather(0, &fact, hosts.facts_.data(), sizeof fact));
  return hosts;
}

bool Hosts::areOne() const {
  for (const Fact& fact : facts_)
    if (std::strcmp(fact.network, facts_.front().network) != 0)
      return false;
  return true;
}

int64_t Hosts::lowestBesidesFirst(int64_t rank) const {
  for (int64_t other = 1; other < rank; ++other)
    if (std::strcmp(at(other).network, at(rank).network) == 0)
      return other;
  return rank;
}

Result<std::vector<Relay::Link>> connectStar(Operations& operations, const Hosts& hosts,
                                             int64_t rank, int64_t ranks) {
  TITAN_TRY(operations.enter(FixedText("the address of rank 0")));
  Announcement announcement{};
  std::optional<StarCenter> center;
  if (rank == 0) {
    Result<StarCenter> listening = StarCenter::listen(hosts.areOne());
    if (listening.ok()) {
      center.emplace(listening.take());
      announcement.invitation = center->invitation();
    } else {
      const std::string& why = listening.error().message();
      std::memcpy(announcement.error, why.data(),
                  std::min(why.size(), sizeof announcement.error - 1));
    }
  }
  TITAN_TRY(operations.broadcast(0, 0, &announcement, sizeof announcement));
  if (announcement.error[0] != '\0')
    return Error::environment("rank 0: {}", announcement.error);
  std::vector<Relay::Link> links;
  if (rank != 0) {
    Result<Socket> socket = joinStar(announcement.invitation, rank, timeToConnect);
    if (!socket.ok())
      return std::move(socket.takeError())
          .withContext(fmt::format("rank {} on {}", rank, hosts.name(rank)));
    links.push_back({0, socket.take()});
    return links;
  }
  std::vector<Socket> sockets = TITAN_TRY(center->accept(ranks, timeToConnect));
  for (int64_t peer = 1; peer < ranks; ++peer)
    links.push_back({peer, std::move(sockets[static_cast<size_t>(peer)])});
  return links;
}

} // namespace titan
