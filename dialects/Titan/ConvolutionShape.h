// The extents of a convolution, by which its three ops are verified, interpreted and lowered.
#pragma once

#include "dialects/Titan/Windows.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace titan::ir {

/// Channels are last in every tensor. Dimension d of space has `operand[d]` elements, over which a
/// kernel of `taps[d]` elements takes `positions[d]` positions.
struct ConvolutionShape {
  int64_t batch, groups;
  int64_t inputs, outputs; ///< channels of one group
  llvm::SmallVector<int64_t> operand, taps, positions;
  llvm::ArrayRef<int64_t> strides, low, high, dilations;

  size_t rank() const { return operand.size(); } ///< of space
  Windows windows(size_t d) const {
    return {taps[d], strides[d], low[d], dilations[d], operand[d], positions[d]};
  }
  /// Elements that a window covers along `d`, those between its taps included.
  int64_t window(size_t d) const { return windows(d).covered(); }
  int64_t padded(size_t d) const { return low[d] + operand[d] + high[d]; }
  /// Positions along `d` of windows in the padded operand; below 1 where it is too small for one.
  int64_t fitting(size_t d) const {
    const int64_t room = padded(d) - window(d);
    return room < 0 ? 0 : room / strides[d] + 1;
  }
  int64_t flops() const; ///< multiply-adds count as two, those with padding included

  llvm::SmallVector<int64_t> operandDims() const;  ///< [N, space..., g C]
  llvm::SmallVector<int64_t> kernelDims() const;   ///< [g O, taps..., C]
  llvm::SmallVector<int64_t> positionDims() const; ///< [N, positions..., g O]
};

} // namespace titan::ir
