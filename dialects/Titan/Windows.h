// Windows along one dimension, and where their gradients go.
#pragma once

#include <algorithm>
#include <cstdint>

namespace titan::ir {

/// Position p reads element p * stride + t * dilation - low for each tap t.
struct Windows {
  int64_t taps, stride, low, dilation;
  int64_t extent;    ///< of the operand
  int64_t positions; ///< windows

  int64_t covered() const { return dilation * (taps - 1) + 1; }
};

/// The gradient of the windows with `interior` zeros between its elements, `before` zeros in front
/// of them, and more behind up to `extent`. Tap t of element i is then at first + i +
/// (taps - 1 - t) * dilation.
struct SpreadGradient {
  int64_t before, interior, extent, first;

  explicit SpreadGradient(const Windows& windows)
      : before(std::max<int64_t>(windows.covered() - 1 - windows.low, 0)),
        interior(windows.stride - 1),
        extent(before + std::max((windows.positions - 1) * windows.stride + 1,
                                 windows.extent + windows.low)),
        first(windows.low - windows.covered() + 1 + before) {}

  /// Is it the gradient as it is?
  bool isTrivial(const Windows& windows) const {
    return before == 0 && interior == 0 && extent == windows.positions;
  }
};

} // namespace titan::ir
