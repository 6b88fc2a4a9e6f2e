// The attributes of ONNX's windows: kernel_shape, strides, dilations, pads, auto_pad, ceil_mode.
#pragma once

#include "frontend/onnx/convert/Conversion.h"

namespace titan::frontend {

/// Windows over the dimensions of space, one entry of each list for each.
struct WindowDims {
  struct Dim {
    int64_t taps, stride = 1, low = 0, high = 0, dilation = 1;
    int64_t extent; ///< of the operand
    int64_t covered() const { return dilation * (taps - 1) + 1; }
    int64_t padded() const { return low + extent + high; }
  };

  std::vector<int64_t> taps, strides, low, high, dilations, extents;
  std::vector<int64_t> positions;
  std::vector<int64_t> declaredHigh; ///< `high` without what ceil_mode adds

  void append(const Dim& dim);
  /// 1 / the number of elements of the window at each position, in row-major order; `withPadding`:
  /// those of the declared padding count too.
  std::vector<double> shares(bool withPadding) const;
};

/// Of a convolution of an operand [N, C, space...] with a kernel of `taps`. Errors: lists of other
/// lengths, numbers out of range, a window larger than the padded operand.
Result<WindowDims> windowsOf(const Conversion& c, const Shape& operand, const Shape& taps);
/// Of a pool, whose taps are an attribute. Errors: also a window that lies in the padding alone.
Result<WindowDims> poolWindowsOf(const Conversion& c, const Shape& operand);

/// Of a transposed convolution: windows over `extents` in space, and as many `zeros` behind them as
/// the result has elements more.
struct TransposedWindows {
  WindowDims windows;
  std::vector<int64_t> extents, zeros;
};
Result<TransposedWindows> transposedWindowsOf(const Conversion& c, const Shape& operand,
                                              const Shape& taps);

} // namespace titan::frontend
