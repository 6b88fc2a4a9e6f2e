// Windows along one dimension, and where their gradients go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace titan::ir {

/// Position p reads element p * stride + t * dilation - low for each tap t.
struct Windows {
  int64_t taps, stride, low, dilation;
  int64_t extent;    ///< of the operand
  int64_t positions; ///< windows

  int64_t covered() const { return dilation * (taps - 1) + 1; }
  /// The first position whose window has no element of the operand, if there is one.
  std::optional<int64_t> firstInPadding() const {
    for (int64_t p = 0; p < positions; ++p) {
      const int64_t start = p * stride - low;
      const int64_t tap = start < 0 ? (dilation - 1 - start) / dilation : 0;
      if (tap >= taps || start + tap * dilation >= extent)
        return p;
    }
    return std::nullopt;
  }
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
};

} // namespace titan::ir
