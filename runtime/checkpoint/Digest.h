// XXH3-128 of a stream of bytes: finds damage, is no protection against forgery.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace titan::checkpoint {

class Digest {
public:
  Digest();
  ~Digest();
  Digest(Digest&&) noexcept;

  void update(std::string_view bytes);
  /// Of everything so far: 32 hex digits, the canonical (big-endian) form that `xxhsum -H2` prints.
  std::string hex() const;
  /// The same as 16 bytes.
  std::string bytes() const;
  /// As if nothing had been taken.
  void reset();

private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string digestOf(std::string_view bytes);

} // namespace titan::checkpoint
