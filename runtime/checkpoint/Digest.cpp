#include "runtime/checkpoint/Digest.h"

#include "runtime/program/Text.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace titan::checkpoint {

struct Digest::State {
  XXH3_state_t xxh;
};

Digest::Digest() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }
Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;

void Digest::update(std::string_view bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

std::string Digest::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string Digest::bytes() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh));
  return {reinterpret_cast<const char*>(canonical.digest), sizeof canonical.digest};
}

void Digest::reset() { XXH3_128bits_reset(&state_->xxh); }

std::string digestOf(std::string_view bytes) { return digest128(bytes); }

} // namespace titan::checkpoint
