#include "runtime/program/Permutation.h"

#include "runtime/program/Random.h"

#include <bit>

namespace titan {

namespace {
// Small domains need more rounds than the four that suffice asymptotically: with five samples, four
// rounds leave a position's distribution over epochs far off, ten do not.
constexpr uint64_t rounds = 12;
} // namespace

Permutation::Permutation(uint64_t n, uint64_t seed, uint64_t epoch)
    : n_(n), key_(randomKey(seed, randomStream("data", 0))), epoch_(epoch),
      halfBits_(n < 2 ? 1 : (static_cast<unsigned>(std::bit_width(n - 1)) + 1) / 2) {}

uint64_t Permutation::operator()(uint64_t i) const {
  const uint64_t mask = (uint64_t{1} << halfBits_) - 1;
  // The domain is below 4n, so a walk takes fewer than four turns on average.
  do {
    uint64_t left = i >> halfBits_, right = i & mask;
    for (uint64_t round = 0; round < rounds; ++round) {
      const uint64_t image = philox4x32_7(key_, round << 32 | right, epoch_)[0];
      const uint64_t next = left ^ (image & mask);
      left = right;
      right = next;
    }
    i = left << halfBits_ | right;
  } while (i >= n_);
  return i;
}

uint64_t sampleAt(uint64_t position, uint64_t samples, uint64_t seed, bool shuffle) {
  const uint64_t index = position % samples;
  return shuffle ? Permutation(samples, seed, position / samples)(index) : index;
}

} // namespace titan
