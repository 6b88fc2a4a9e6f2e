// Do boxes cover a tensor, each element once? By sorting, so that thousands of boxes are no matter.
#pragma once

#include "runtime/program/Placement.h"

#include <span>

namespace titan::checkpoint {

/// More dimensions than that are never cut at once.
inline constexpr size_t mostCutDimensions = 8;

/// BadInput, a clause that follows the tensor's name: "the pieces at [0, 2] and [0, 3] overlap",
/// "the pieces in the files hold 4 elements". Boxes lie in [0, shape); empty ones do not count.
Status checkCoverOnce(std::span<const Box> boxes, const Shape& shape);

} // namespace titan::checkpoint
