#include "runtime/job/Sampler.h"

#include "runtime/program/Random.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace titan {

Sampler::Sampler(SamplerOptions options)
    : options_(options), key_(randomKey(options.seed, randomStream("sample", 0))) {}

Result<int64_t> Sampler::draw(std::span<const float> logits, uint64_t index) {
  // -infinity is a token that the model never chooses.
  for (size_t token = 0; token < logits.size(); ++token)
    if (std::isnan(logits[token]) || logits[token] == INFINITY)
      return Error::runFailed("the model's output for token {} is {}: its weights are no use",
                              token, logits[token]);
  const auto likeliest = std::ranges::max_element(logits);
  if (*likeliest == -INFINITY)
    return Error::runFailed("the model's output is -inf for all {} tokens", logits.size());
  if (options_.temperature == 0)
    return likeliest - logits.begin();

  candidates_.resize(logits.size());
  std::iota(candidates_.begin(), candidates_.end(), 0);
  if (const auto k = static_cast<size_t>(options_.topK); k > 0 && k < logits.size()) {
    std::ranges::nth_element(candidates_, candidates_.begin() + options_.topK,
                             [&](int64_t a, int64_t b) {
                               return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
                             });
    candidates_.resize(k);
    std::ranges::sort(candidates_);
  }
  auto weight = [&](int64_t token) {
    return std::exp((static_cast<double>(logits[token]) - *likeliest) / options_.temperature);
  };
  double total = 0;
  for (int64_t token : candidates_)
    total += weight(token);
  const double wanted = uniformDraw(key_, 0, index) * total;
  double sum = 0;
  for (int64_t token : candidates_)
    if ((sum += weight(token)) > wanted)
      return token;
  return candidates_.back();
}

} // namespace titan
