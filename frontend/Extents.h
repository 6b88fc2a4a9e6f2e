// The sizes that a model's tensors may have.
#pragma once

#include "runtime/program/DType.h"

namespace titan::frontend {

inline constexpr int64_t kMostElements = int64_t(1) << 40;
inline constexpr size_t kHighestRank = 32;

/// The elements of `shape`, refused when negative, more than 2^40 or of rank above 32.
inline Result<int64_t> checkedElementCount(std::span<const int64_t> shape, std::string_view what) {
  if (shape.size() > kHighestRank)
    return Error::badInput("{}: rank {} is above {}", what, shape.size(), kHighestRank);
  int64_t count = 1;
  for (int64_t extent : shape)
    if (extent == 0)
      count = 0;
  for (int64_t extent : shape) {
    if (extent < 0)
      return Error::badInput("{}: negative extent {}", what, extent);
    if (count == 0)
      continue;
    if (extent > kMostElements / count)
      return Error::badInput("{}: more than {} elements", what, kMostElements);
    count *= extent;
  }
  return count;
}

} // namespace titan::frontend
