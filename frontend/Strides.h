// Row-major tensors as strides: what folding on files and evaluating ops have in common.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace titan::frontend {

/// Elements between neighbours in each dimension of `shape`.
inline std::vector<int64_t> rowMajorStrides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * shape[d];
  return strides;
}

/// Calls `visit(i, position)` for each element i = (i0, i1, ...) of `shape`, row-major, where
/// position is base + the sum of i_d * strides[d].
template <typename Visit>
void forEachPosition(std::span<const int64_t> shape, int64_t base, std::span<const int64_t> strides,
                     Visit visit) {
  // An odometer over the dimensions: masks have millions of elements.
  std::vector<int64_t> index(shape.size(), 0);
  int64_t position = base, count = 1;
  for (int64_t extent : shape)
    count *= extent;
  for (int64_t i = 0; i < count; ++i) {
    visit(i, position);
    for (size_t d = shape.size(); d-- > 0;) {
      position += strides[d];
      if (++index[d] < shape[d])
        break;
      position -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

} // namespace titan::frontend
