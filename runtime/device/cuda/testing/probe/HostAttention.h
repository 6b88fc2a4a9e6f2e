// Attention on the host in double, without a thought of speed: what a library's results are held
// to.
#pragma once

#include "runtime/program/Program.h"

#include <vector>

namespace titan::cuda {

/// [batch, rows, heads, width], contiguous.
struct HostTensor {
  int64_t batch = 0, rows = 0, heads = 0, width = 0;
  std::vector<double> values; ///< empty: of shapes alone

  HostTensor() = default;
  HostTensor(int64_t batch, int64_t rows, int64_t heads, int64_t width, bool hasValues)
      : batch(batch), rows(rows), heads(heads), width(width),
        values(hasValues ? static_cast<size_t>(batch * rows * heads * width) : 0) {}
  double* at(int64_t b, int64_t row, int64_t head) {
    return values.data() + ((b * rows + row) * heads + head) * width;
  }
  const double* at(int64_t b, int64_t row, int64_t head) const {
    return const_cast<HostTensor*>(this)->at(b, row, head);
  }
};

struct HostAttention {
  HostTensor query, key, value, result, dresult, dquery, dkey, dvalue;
  HostTensor logSumExp; ///< [batch, heads, queries, 1]
};

/// Fills result and logSumExp.
void attend(const Attention& attention, HostAttention& tensors);
/// Fills the adjoints of query, key and value. Reads the others.
void attendBackward(const Attention& attention, HostAttention& tensors);

} // namespace titan::cuda
