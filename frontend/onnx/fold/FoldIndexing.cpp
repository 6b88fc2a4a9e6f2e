// Folding of lookups and writes by index.
#include "frontend/onnx/fold/FoldRules.h"

#include <algorithm>

namespace titan::frontend {

namespace {

void setElement(HostTensor& to, int64_t at, const HostTensor& from, int64_t position) {
  if (to.isFloat())
    to.reals[at] = from.reals[position];
  else
    to.integers[at] = from.integers[position];
}

Result<int64_t> checkedIndex(const Node& node, int64_t index, int64_t extent) {
  if (index < -extent || index >= extent)
    return Error::badInput("{}: index {} is outside of {}", node.shown(), index, extent);
  return index < 0 ? index + extent : index;
}

/// The product of `shape`'s extents from dimension `begin` on.
int64_t innerCount(const Shape& shape, size_t begin) {
  return elementCount(std::span(shape).subspan(begin));
}

Folded gather(const Node& node, const HostTensor& data, const HostTensor& indices,
              int64_t largest) {
  int64_t axis = TITAN_TRY(
      normalizeAxis(node, node.integer("axis", 0), static_cast<int64_t>(data.shape.size())));
  Shape shape(data.shape.begin(), data.shape.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), data.shape.begin() + axis + 1, data.shape.end());
  if (TITAN_TRY(checkedElementCount(shape, node.shown())) > largest)
    return nothing();
  int64_t extent = data.shape[axis], inner = innerCount(data.shape, axis + 1);
  int64_t outer = elementCount(std::span(data.shape).first(axis));
  HostTensor out = HostTensor::empty(data.dtype, shape);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < indices.size(); ++k) {
      int64_t index = TITAN_TRY(checkedIndex(node, indices.integer(k), extent));
      for (int64_t i = 0; i < inner; ++i)
        out.pushFrom(data, (o * extent + index) * inner + i);
    }
  return one(std::move(out));
}

/// The positions in a tensor of `shape` that the index tuples [I..., K] name, in order.
Result<std::vector<int64_t>> tuplePositions(const Node& node, const HostTensor& indices,
                                            const Shape& shape) {
  if (indices.shape.empty() || indices.shape.back() < 1 ||
      indices.shape.back() > static_cast<int64_t>(shape.size()))
    return Error::badInput("{}: indices of {} for {}", node.shown(), toString(indices.shape),
                           toString(shape));
  int64_t width = indices.shape.back();
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < indices.size(); i += width) {
    int64_t position = 0;
    for (int64_t k = 0; k < width; ++k)
      position =
          position * shape[k] + TITAN_TRY(checkedIndex(node, indices.integer(i + k), shape[k]));
    positions.push_back(position);
  }
  return positions;
}

Folded gatherND(const Node& node, const HostTensor& data, const HostTensor& indices,
                int64_t largest) {
  if (node.integer("batch_dims", 0) != 0)
    return nothing();
  auto positions = TITAN_TRY(tuplePositions(node, indices, data.shape));
  size_t width = static_cast<size_t>(indices.shape.back());
  Shape shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(), data.shape.begin() + static_cast<long>(width), data.shape.end());
  if (TITAN_TRY(checkedElementCount(shape, node.shown())) > largest)
    return nothing();
  int64_t inner = innerCount(data.shape, width);
  HostTensor out = HostTensor::empty(data.dtype, shape);
  for (int64_t position : positions)
    for (int64_t i = 0; i < inner; ++i)
      out.pushFrom(data, position * inner + i);
  return one(std::move(out));
}

Folded scatterND(const Node& node, const HostTensor& data, const HostTensor& indices,
                 const HostTensor& updates) {
  if (node.text("reduction", "none") != "none" || data.dtype != updates.dtype)
    return nothing();
  auto positions = TITAN_TRY(tuplePositions(node, indices, data.shape));
  int64_t inner = innerCount(data.shape, static_cast<size_t>(indices.shape.back()));
  if (updates.size() != static_cast<int64_t>(positions.size()) * inner)
    return Error::badInput("{}: updates of {} for indices of {}", node.shown(),
                           toString(updates.shape), toString(indices.shape));
  HostTensor out = data;
  for (size_t p = 0; p < positions.size(); ++p)
    for (int64_t i = 0; i < inner; ++i)
      setElement(out, positions[p] * inner + i, updates, static_cast<int64_t>(p) * inner + i);
  return one(std::move(out));
}

/// For each element of `indices`, the position in `shape` that has its coordinates, but the index
/// along the axis.
Result<std::vector<int64_t>> elementPositions(const Node& node, const HostTensor& indices,
                                              const Shape& shape) {
  int64_t axis =
      TITAN_TRY(normalizeAxis(node, node.integer("axis", 0), static_cast<int64_t>(shape.size())));
  bool fits = indices.shape.size() == shape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d)
    fits = static_cast<int64_t>(d) == axis || indices.shape[d] <= shape[d];
  if (!fits)
    return Error::badInput("{}: indices of {} for {}", node.shown(), toString(indices.shape),
                           toString(shape));
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < indices.size(); ++i) {
    int64_t position = 0, stride = 1, rest = i;
    for (size_t d = shape.size(); d-- > 0;) {
      int64_t coordinate = rest % indices.shape[d];
      if (static_cast<int64_t>(d) == axis)
        coordinate = TITAN_TRY(checkedIndex(node, indices.integer(i), shape[d]));
      position += coordinate * stride;
      stride *= shape[d];
      rest /= indices.shape[d];
    }
    positions.push_back(position);
  }
  return positions;
}

Folded gatherElements(const Node& node, const HostTensor& data, const HostTensor& indices) {
  HostTensor out = HostTensor::empty(data.dtype, indices.shape);
  for (int64_t position : TITAN_TRY(elementPositions(node, indices, data.shape)))
    out.pushFrom(data, position);
  return one(std::move(out));
}

Folded scatterElements(const Node& node, const HostTensor& data, const HostTensor& indices,
                       const HostTensor& updates) {
  if (node.text("reduction", "none") != "none" || data.dtype != updates.dtype)
    return nothing();
  if (updates.shape != indices.shape)
    return Error::badInput("{}: updates of {} for indices of {}", node.shown(),
                           toString(updates.shape), toString(indices.shape));
  HostTensor out = data;
  auto positions = TITAN_TRY(elementPositions(node, indices, data.shape));
  for (size_t i = 0; i < positions.size(); ++i)
    setElement(out, positions[i], updates, static_cast<int64_t>(i));
  return one(std::move(out));
}

/// `values` = [off, on]; indices outside of the depth give no `on`.
Folded oneHot(const Node& node, const HostTensor& indices, const HostTensor& depths,
              const HostTensor& values, int64_t largest) {
  if (indices.isFloat() || depths.isFloat() || depths.size() != 1 || values.size() != 2)
    return nothing();
  const int64_t depth = depths.integer(0);
  const auto rank = static_cast<int64_t>(indices.shape.size());
  const int64_t axis = TITAN_TRY(normalizeAxis(node, node.integer("axis", -1), rank + 1));
  Shape shape = indices.shape;
  shape.insert(shape.begin() + axis, depth);
  if (depth < 1 || TITAN_TRY(checkedElementCount(shape, node.shown())) > largest)
    return nothing();
  const int64_t inner = innerCount(indices.shape, axis);
  const int64_t outer = elementCount(std::span(indices.shape).first(axis));
  HostTensor out = HostTensor::empty(values.dtype, shape);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t index = indices.integer(o * inner + i);
        out.pushFrom(values, index == k || index + depth == k ? 1 : 0);
      }
  return one(std::move(out));
}

/// The coordinates of all elements that are not zero: [rank, count].
Folded nonZero(const HostTensor& data, int64_t largest) {
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < data.size(); ++i)
    if (data.real(i) != 0)
      positions.push_back(i);
  auto rank = static_cast<int64_t>(data.shape.size());
  auto count = static_cast<int64_t>(positions.size());
  if (rank * count > largest)
    return nothing();
  HostTensor out = HostTensor::empty(DType::I64, {rank, count});
  for (int64_t d = 0; d < rank; ++d)
    for (int64_t position : positions)
      out.push(position / innerCount(data.shape, d + 1) % data.shape[d]);
  return one(std::move(out));
}

} // namespace

Folded foldIndexing(const Node& node, const HostInputs& inputs, int64_t largest) {
  const std::string& op = node.opType;
  auto operand = [&](size_t i) { return i < inputs.size() ? inputs[i] : nullptr; };
  if (!operand(0))
    return nothing();
  const HostTensor& data = *inputs[0];
  if (op == "NonZero")
    return nonZero(data, largest);
  if (op == "OneHot" && operand(1) && operand(2))
    return oneHot(node, data, *operand(1), *operand(2), largest);
  if (!operand(1) || operand(1)->isFloat())
    return nothing();
  const HostTensor& indices = *inputs[1];
  if (op == "Gather")
    return gather(node, data, indices, largest);
  if (op == "GatherND")
    return gatherND(node, data, indices, largest);
  if (op == "GatherElements")
    return gatherElements(node, data, indices);
  if (op == "ScatterND" && operand(2))
    return scatterND(node, data, indices, *operand(2));
  if ((op == "ScatterElements" || op == "Scatter") && operand(2))
    return scatterElements(node, data, indices, *operand(2));
  return nothing();
}

} // namespace titan::frontend
