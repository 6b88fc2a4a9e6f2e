// One token drawn from a row of logits.
#pragma once

#include "runtime/program/Error.h"

#include <cstdint>
#include <span>
#include <vector>

namespace titan {

struct SamplerOptions {
  double temperature = 1; ///< divides the logits; 0: always the most likely token
  int64_t topK = 0;       ///< only the so many most likely tokens; 0: all
  uint64_t seed = 0;
};

class Sampler {
public:
  explicit Sampler(SamplerOptions options);

  /// Token `index` of the text, from softmax(logits / temperature): the first whose cumulative
  /// probability, in the order of the vocabulary, exceeds a uniform number that depends on (seed,
  /// index) alone (runtime/program/Random.h). Of equal logits the lower token counts as the more
  /// likely one. RunFailed when a logit is NaN or +infinity, or all are -infinity.
  Result<int64_t> draw(std::span<const float> logits, uint64_t index);

private:
  SamplerOptions options_;
  uint64_t key_;
  std::vector<int64_t> candidates_; ///< kept to allocate once
};

} // namespace titan
