// Arithmetic on shapes and axes that folding and conversion share: both must read an operator's
// attributes the same way.
#pragma once

#include "frontend/onnx/fold/HostTensor.h"
#include "frontend/onnx/read/Graph.h"

namespace titan::frontend {

/// `axis` counted from the front. Error: outside of [-rank, rank).
Result<int64_t> normalizeAxis(const Node& node, int64_t axis, int64_t rank);
/// Sorted and counted from the front. Error: outside of the rank, or twice the same.
Result<std::vector<int64_t>> normalizeAxes(const Node& node, std::vector<int64_t> axes,
                                           int64_t rank);

/// Reshape's target for an operand of shape `from`: 0 copies (unless `allowZero`), one -1 is
/// inferred.
Result<Shape> reshapeTarget(const Node& node, std::span<const int64_t> from,
                            const std::vector<int64_t>& target, bool allowZero);
/// Expand's result: the two-way broadcast of `from` and `target`.
Result<Shape> expandTarget(const Node& node, std::span<const int64_t> from,
                           const std::vector<int64_t>& target);
Result<Shape> squeezeTarget(const Node& node, std::span<const int64_t> from,
                            const std::optional<std::vector<int64_t>>& axes);
Result<Shape> unsqueezeTarget(const Node& node, std::span<const int64_t> from,
                              std::vector<int64_t> axes);
/// Transpose's permutation: the attribute, checked, or the reversal.
Result<std::vector<int64_t>> permutationOf(const Node& node, int64_t rank);

/// One dimension of a Slice, with the specification's clamping: element i is from[start + i *
/// step].
struct SliceDim {
  int64_t start = 0, step = 1, count = 0;
};
/// One entry per dimension of `from`. Absent `axes`: the first ones; absent `steps`: 1.
Result<std::vector<SliceDim>> sliceDims(const Node& node, std::span<const int64_t> from,
                                        const std::vector<int64_t>& starts,
                                        const std::vector<int64_t>& ends,
                                        const std::optional<std::vector<int64_t>>& axes,
                                        const std::optional<std::vector<int64_t>>& steps);

/// Sizes of Split's pieces along an extent: given sizes, or `pieces` (nearly) equal ones.
Result<std::vector<int64_t>> splitSizes(const Node& node, int64_t extent,
                                        const std::optional<std::vector<int64_t>>& sizes,
                                        int64_t pieces);

/// The values of a constant that lists integers (axes, shapes).
std::vector<int64_t> listOf(const HostTensor& tensor);

} // namespace titan::frontend
