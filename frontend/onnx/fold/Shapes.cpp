#include "frontend/onnx/fold/Shapes.h"

#include <algorithm>
#include <set>

namespace titan::frontend {

Result<int64_t> normalizeAxis(const Node& node, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return Error::badInput("{}: axis {} is outside of rank {}", node.shown(), axis, rank);
  return axis < 0 ? axis + rank : axis;
}

Result<std::vector<int64_t>> normalizeAxes(const Node& node, std::vector<int64_t> axes,
                                           int64_t rank) {
  for (int64_t& axis : axes)
    axis = TITAN_TRY(normalizeAxis(node, axis, rank));
  std::sort(axes.begin(), axes.end());
  if (auto it = std::adjacent_find(axes.begin(), axes.end()); it != axes.end())
    return Error::badInput("{}: axis {} is given twice", node.shown(), *it);
  return axes;
}

Result<Shape> reshapeTarget(const Node& node, std::span<const int64_t> from,
                            const std::vector<int64_t>& target, bool allowZero) {
  Shape shape = target;
  int64_t inferred = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !allowZero) {
      if (i >= from.size())
        return Error::badInput("{}: target {} copies dimension {} of rank {}", node.shown(),
                               toString(target), i, from.size());
      shape[i] = from[i];
    } else if (shape[i] == -1) {
      if (inferred >= 0)
        return Error::badInput("{}: target {} has more than one -1", node.shown(),
                               toString(target));
      inferred = static_cast<int64_t>(i);
      shape[i] = 1;
    }
  }
  int64_t known = TITAN_TRY(checkedElementCount(shape, node.shown()));
  int64_t total = TITAN_TRY(checkedElementCount(from, node.shown()));
  if (inferred >= 0 && known > 0 && total % known == 0)
    shape[inferred] = total / known;
  if (elementCount(shape) != total || (inferred >= 0 && known == 0))
    return Error::badInput("{}: {} of {} elements cannot be reshaped to {}", node.shown(),
                           toString(from), total, toString(target));
  return shape;
}

Result<Shape> expandTarget(const Node& node, std::span<const int64_t> from,
                           const std::vector<int64_t>& target) {
  TITAN_TRY(checkedElementCount(target, node.shown()));
  std::optional<Shape> shape = broadcastShape(from, target);
  if (!shape)
    return Error::badInput("{}: {} does not broadcast to {}", node.shown(), toString(from),
                           toString(target));
  TITAN_TRY(checkedElementCount(*shape, node.shown()));
  return *shape;
}

Result<Shape> squeezeTarget(const Node& node, std::span<const int64_t> from,
                            const std::optional<std::vector<int64_t>>& axes) {
  Shape shape;
  int64_t rank = static_cast<int64_t>(from.size());
  std::set<int64_t> dropped;
  if (axes) {
    auto normalized = TITAN_TRY(normalizeAxes(node, *axes, rank));
    dropped.insert(normalized.begin(), normalized.end());
  }
  for (int64_t i = 0; i < rank; ++i) {
    bool drop = axes ? dropped.contains(i) : from[i] == 1;
    if (drop && from[i] != 1)
      return Error::badInput("{}: dimension {} of {} is not 1", node.shown(), i, toString(from));
    if (!drop)
      shape.push_back(from[i]);
  }
  return shape;
}

Result<Shape> unsqueezeTarget(const Node& node, std::span<const int64_t> from,
                              std::vector<int64_t> axes) {
  int64_t rank = static_cast<int64_t>(from.size() + axes.size());
  axes = TITAN_TRY(normalizeAxes(node, std::move(axes), rank));
  Shape shape;
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i)
    shape.push_back(std::binary_search(axes.begin(), axes.end(), i) ? 1 : from[next++]);
  return shape;
}

Result<std::vector<int64_t>> permutationOf(const Node& node, int64_t rank) {
  std::vector<int64_t> reversed(rank);
  for (int64_t i = 0; i < rank; ++i)
    reversed[i] = rank - 1 - i;
  const std::vector<int64_t> written = node.integers("perm").value_or(reversed);
  std::vector<int64_t> permutation = written;
  for (int64_t& dim : permutation)
    dim += dim < 0 ? rank : 0; // no ONNX, but what PyTorch's exporters write
  std::vector<int64_t> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  std::reverse(sorted.begin(), sorted.end());
  if (sorted != reversed)
    return Error::badInput("{}: {} does not permute {} dimensions", node.shown(), toString(written),
                           rank);
  return permutation;
}

Result<std::vector<SliceDim>> sliceDims(const Node& node, std::span<const int64_t> from,
                                        const std::vector<int64_t>& starts,
                                        const std::vector<int64_t>& ends,
                                        const std::optional<std::vector<int64_t>>& axes,
                                        const std::optional<std::vector<int64_t>>& steps) {
  int64_t rank = static_cast<int64_t>(from.size());
  std::vector<SliceDim> dims(rank);
  for (int64_t i = 0; i < rank; ++i)
    dims[i] = {0, 1, from[i]};
  size_t count = starts.size();
  if (ends.size() != count || (axes && axes->size() != count) || (steps && steps->size() != count))
    return Error::badInput("{}: starts, ends, axes and steps differ in length", node.shown());
  std::set<int64_t> seen;
  for (size_t i = 0; i < count; ++i) {
    int64_t axis =
        TITAN_TRY(normalizeAxis(node, axes ? (*axes)[i] : static_cast<int64_t>(i), rank));
    if (!seen.insert(axis).second)
      return Error::badInput("{}: axis {} is given twice", node.shown(), axis);
    int64_t extent = from[axis], step = steps ? (*steps)[i] : 1;
    if (step == 0 || step == INT64_MIN)
      return Error::badInput("{}: a step of {}", node.shown(), step);
    // Negative positions count from the end; then clamp to what a forward or a backward walk may
    // start and end at.
    auto clamp = [&](int64_t position) {
      if (position < 0)
        position = position < -extent ? -1 : position + extent;
      return step > 0 ? std::clamp<int64_t>(position, 0, extent)
                      : std::clamp<int64_t>(position, -1, extent - 1);
    };
    int64_t start = clamp(starts[i]);
    // A backward walk that starts before the first element starts at the first.
    if (step < 0 && start < 0 && extent > 0)
      start = 0;
    int64_t end = clamp(ends[i]);
    int64_t distance = step > 0 ? end - start : start - end;
    int64_t stride = step > 0 ? step : -step;
    int64_t elements = distance > 0 ? (distance - 1) / stride + 1 : 0;
    // A step that is never taken may be as large as int64.
    dims[axis] = {elements > 0 ? start : 0, elements > 1 ? step : 1, elements};
  }
  return dims;
}

Result<std::vector<int64_t>> splitSizes(const Node& node, int64_t extent,
                                        const std::optional<std::vector<int64_t>>& sizes,
                                        int64_t pieces) {
  if (sizes) {
    int64_t left = extent;
    for (int64_t size : *sizes) {
      if (size < 0 || size > left)
        return Error::badInput("{}: pieces {} do not add up to {}", node.shown(), toString(*sizes),
                               extent);
      left -= size;
    }
    if (left != 0 || sizes->empty())
      return Error::badInput("{}: pieces {} do not add up to {}", node.shown(), toString(*sizes),
                             extent);
    return *sizes;
  }
  if (pieces <= 0 || pieces > std::max<int64_t>(extent, 1))
    return Error::badInput("{}: {} cannot be split into {} pieces", node.shown(), extent, pieces);
  int64_t chunk = (extent + pieces - 1) / pieces;
  std::vector<int64_t> out;
  for (int64_t i = 0, left = extent; i < pieces; ++i) {
    out.push_back(std::min(chunk, left));
    left -= out.back();
  }
  return out;
}

std::vector<int64_t> listOf(const HostTensor& tensor) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor.size(); ++i)
    values.push_back(tensor.integer(i));
  return values;
}

} // namespace titan::frontend
