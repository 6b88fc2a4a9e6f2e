#include "runtime/program/AttentionNeeds.h"

#include <algorithm>

namespace titan {
namespace {

/// More batches at once gain nothing when a card is full, which it is by then.
constexpr int64_t enough = int64_t{1} << 30;
/// For one batch: a longer context leaves no memory for the model.
constexpr int64_t most = int64_t{4} << 30;
constexpr int64_t mebibyte = int64_t{1} << 20;

int64_t padded(int64_t rows) {
  constexpr int64_t tile = 128;
  return (rows + tile - 1) / tile * tile;
}

} // namespace

int64_t attentionWorkspace(const Attention& a, int64_t batch) {
  if (!a.backward)
    return mebibyte;
  // A deterministic backward pass keeps the adjoints of all scores, in bf16 as padded tiles. (Sums
  // of dQ in any order would be smaller.) Heads that share keys have a dK and dV each. The sums of
  // dO * O are one f32 a row.
  const int64_t heads = batch * a.heads;
  const int64_t scores = 2 * heads * padded(a.queries) * padded(a.keys);
  const int64_t shared = a.heads == a.keyHeads ? 0 : 2 * heads * a.keys * (a.width + a.valueWidth);
  return scores + shared + 4 * heads * a.queries + mebibyte;
}

int64_t batchesAtOnce(const Attention& a, int64_t bytes) {
  for (int64_t batch = a.batch; batch > 1; --batch)
    if (a.batch % batch == 0 && attentionWorkspace(a, batch) <= bytes)
      return batch;
  return 1;
}

int64_t plannedAttentionWorkspace(const Attention& a) {
  const int64_t bytes = attentionWorkspace(a, batchesAtOnce(a, enough));
  return bytes <= most ? bytes : 0;
}

} // namespace titan
