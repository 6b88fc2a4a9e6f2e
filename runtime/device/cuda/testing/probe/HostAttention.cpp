#include "runtime/device/cuda/testing/probe/HostAttention.h"

#include <cmath>

namespace titan::cuda {
namespace {

double dot(const double* a, const double* b, int64_t width) {
  double sum = 0;
  for (int64_t i = 0; i < width; ++i)
    sum += a[i] * b[i];
  return sum;
}

void add(double* to, double factor, const double* from, int64_t width) {
  for (int64_t i = 0; i < width; ++i)
    to[i] += factor * from[i];
}

/// Calls `body` with batch, head, the keys' head, query and the number of keys that it attends to.
template <typename Body> void forQueries(const Attention& a, Body body) {
  const int64_t group = a.heads / a.keyHeads;
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t head = 0; head < a.heads; ++head)
      for (int64_t query = 0; query < a.queries; ++query)
        body(b, head, head / group, query, a.causal ? std::min(query + 1, a.keys) : a.keys);
}

} // namespace

void attend(const Attention& a, HostAttention& t) {
  forQueries(a, [&](int64_t b, int64_t head, int64_t keyHead, int64_t query, int64_t keys) {
    std::vector<double> scores(static_cast<size_t>(keys));
    double sum = 0;
    for (int64_t key = 0; key < keys; ++key)
      sum += scores[key] =
          std::exp(a.scale * dot(t.query.at(b, query, head), t.key.at(b, key, keyHead), a.width));
    for (int64_t key = 0; key < keys; ++key)
      add(t.result.at(b, query, head), scores[key] / sum, t.value.at(b, key, keyHead),
          a.valueWidth);
    *t.logSumExp.at(b, head, query) = std::log(sum);
  });
}

void attendBackward(const Attention& a, HostAttention& t) {
  forQueries(a, [&](int64_t b, int64_t head, int64_t keyHead, int64_t query, int64_t keys) {
    const double *q = t.query.at(b, query, head), *dresult = t.dresult.at(b, query, head);
    const double total = dot(dresult, t.result.at(b, query, head), a.valueWidth);
    for (int64_t key = 0; key < keys; ++key) {
      const double* k = t.key.at(b, key, keyHead);
      const double probability =
          std::exp(a.scale * dot(q, k, a.width) - *t.logSumExp.at(b, head, query));
      const double dscore =
          a.scale * probability * (dot(dresult, t.value.at(b, key, keyHead), a.valueWidth) - total);
      add(t.dvalue.at(b, key, keyHead), probability, dresult, a.valueWidth);
      add(t.dquery.at(b, query, head), dscore, k, a.width);
      add(t.dkey.at(b, key, keyHead), dscore, q, a.width);
    }
  });
}

} // namespace titan::cuda
