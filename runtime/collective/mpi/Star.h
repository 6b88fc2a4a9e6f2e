// TCP connections of all ranks with rank 0, which listens while they connect and no longer.
//
// Rank 0 draws two tokens of 128 bits and sends them to the others by a way that they trust. A rank
// shows the first in a message of fixed size, and rank 0 answers with the second. Who shows
// anything else, sends too little within a few seconds, or is one of too many, is closed, and what
// it sent is not looked at.
#pragma once

#include "runtime/program/Error.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace titan {

/// Owns a file number.
class Socket {
public:
  Socket() = default;
  explicit Socket(int number) : number_(number) {}
  Socket(Socket&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Socket& operator=(Socket&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Socket();

  int number() const { return number_; }
  bool isOpen() const { return number_ >= 0; }

private:
  int number_ = -1;
};

using StarToken = std::array<uint8_t, 16>;

/// Where rank 0 listens, and what both sides show. A plain value, to be sent as it is.
struct StarInvitation {
  static constexpr size_t mostAddresses = 16;

  StarToken token{}, answer{};
  uint16_t port = 0;
  uint16_t addresses = 0;
  struct Address {
    uint16_t family = 0;
    uint32_t scope = 0;
    std::array<uint8_t, 16> bytes{};
  };
  std::array<Address, mostAddresses> at{};
};

class StarCenter {
public:
  /// `onThisHost`: only to processes of this host. Environment where it cannot listen.
  static Result<StarCenter> listen(bool onThisHost);

  const StarInvitation& invitation() const { return invitation_; }
  /// Until ranks 1 to ranks - 1 are there: their connections, by rank; then nobody listens any
  /// more. Environment with the ranks that did not come within `limit`.
  Result<std::vector<Socket>> accept(int64_t ranks, std::chrono::milliseconds limit);

private:
  Socket listener_;
  StarInvitation invitation_;
};

/// A connection with rank 0. Environment with the addresses that were tried, and why the last one
/// failed.
Result<Socket> joinStar(const StarInvitation& invitation, int64_t rank,
                        std::chrono::milliseconds limit);

} // namespace titan
