// Along which of its dimensions a tensor is cut into parts for ranks.
#pragma once

#include "mlir/Support/LLVM.h"

#include <optional>

namespace titan {

struct CutDimension {
  int64_t dim = 0;
  int64_t padding = 0; ///< elements of all parts together that are none of the tensor's

  bool operator==(const CutDimension&) const = default;
};

/// The cut of a tensor of `shape` into one part for each of `ranks`, those of all axes together
/// that cut it: dimension 0 if that pads at most 1/16 of the tensor, else the one that pads least,
/// the lowest of equals. With `isTree` always dimension 0: the norm sums rows, which are then
/// whole. Nothing where the tensor has fewer elements than there are ranks: every rank has all of
/// it.
std::optional<CutDimension> cutDimension(llvm::ArrayRef<int64_t> shape, int64_t ranks,
                                         bool isTree = false);

} // namespace titan
