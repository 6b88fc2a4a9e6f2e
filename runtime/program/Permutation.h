// The order of the data: a keyed permutation of [0, n), evaluated point by point. The loader's
// whole state is one integer (samples consumed), valid on any number of ranks.
#pragma once

#include <cstdint>

namespace titan {

/// A bijection of [0, n): a balanced Feistel network over the smallest even-bit domain that holds
/// n, with cycle walking (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002);
/// round function: Philox4x32-7.
class Permutation {
public:
  Permutation(uint64_t n, uint64_t seed, uint64_t epoch);
  /// Where position i of the epoch reads; i < n.
  uint64_t operator()(uint64_t i) const;

private:
  uint64_t n_, key_, epoch_;
  unsigned halfBits_;
};

/// Sample index that the `position`-th sample of the run reads (epochs follow one another without a
/// gap).
uint64_t sampleAt(uint64_t position, uint64_t samples, uint64_t seed, bool shuffle);

} // namespace titan
