// Which part of a tensor each rank of a mesh holds: the one definition that compiler, checkpoints
// and initialization share.
#pragma once

#include "runtime/program/DType.h"

#include <optional>
#include <string>

namespace titan {

/// One axis of the mesh of ranks; the first axis of a mesh varies slowest.
struct MeshAxis {
  std::string name;
  int64_t ranks = 1;
  bool operator==(const MeshAxis&) const = default;
};

/// Dimension `dim` is cut into parts of ceil(extent / ranks), one a coordinate on mesh axis `axis`;
/// the last parts may be shorter, or empty.
struct Cut {
  uint8_t axis = 0;
  int64_t dim = 0;
  /// Reserved: the dimension consists of so many groups, each of which is cut. 1.
  int64_t outer = 1;
  bool operator==(const Cut&) const = default;
};

/// Cuts of a tensor, the outermost first; a dimension may be cut by several axes. Empty: every rank
/// holds the whole.
using Placement = std::vector<Cut>;

/// A part of a tensor: the elements `at` + [0, extent).
struct Box {
  Shape at, extent;
  bool operator==(const Box&) const = default;
};

/// The shape of what each rank holds, padding included. Nothing when a cut names a dimension or an
/// axis that is not there, or an axis twice, or has groups.
std::optional<Shape> localShape(const Shape& global, const Placement& placement,
                                std::span<const MeshAxis> mesh);

/// The parts of the tensor that the rank at `coordinates` holds, without padding; empty for a rank
/// that holds padding alone. `placement` is one that localShape() takes.
std::vector<Box> boxesOf(const Shape& global, const Placement& placement,
                         std::span<const MeshAxis> mesh, std::span<const int64_t> coordinates);

} // namespace titan
