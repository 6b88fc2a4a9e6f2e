// Folding of ops that move elements: the result is a list of positions in the operand.
#include "frontend/onnx/fold/FoldRules.h"

#include <algorithm>

namespace titan::frontend {

namespace {

HostTensor reshaped(HostTensor tensor, Shape shape) {
  tensor.shape = std::move(shape);
  return tensor;
}

Folded concat(const Node& node, const HostInputs& inputs, int64_t largest) {
  int64_t rank = static_cast<int64_t>(inputs[0]->shape.size());
  int64_t axis = TITAN_TRY(normalizeAxis(node, node.integer("axis", 0), rank));
  Shape shape = inputs[0]->shape;
  shape[axis] = 0;
  for (const HostTensor* input : inputs) {
    if (input->dtype != inputs[0]->dtype || input->shape.size() != shape.size())
      return Error::badInput("{}: operands differ in type or rank", node.shown());
    for (int64_t d = 0; d < rank; ++d)
      if (d != axis && input->shape[d] != shape[d])
        return Error::badInput("{}: {} and {} differ outside of axis {}", node.shown(),
                               toString(inputs[0]->shape), toString(input->shape), axis);
    shape[axis] += input->shape[axis];
  }
  if (elementCount(shape) > largest)
    return nothing();
  int64_t outer = 1;
  for (int64_t d = 0; d < axis; ++d)
    outer *= shape[d];
  HostTensor out = HostTensor::empty(inputs[0]->dtype, shape);
  for (int64_t o = 0; o < outer; ++o)
    for (const HostTensor* input : inputs) {
      int64_t run = outer ? input->size() / outer : 0;
      for (int64_t i = 0; i < run; ++i)
        out.pushFrom(*input, o * run + i);
    }
  return one(std::move(out));
}

Folded slice(const Node& node, const HostInputs& inputs) {
  std::vector<int64_t> starts, ends;
  std::optional<std::vector<int64_t>> axes, steps;
  if (node.opset < 10) {
    starts = node.integers("starts").value_or(std::vector<int64_t>());
    ends = node.integers("ends").value_or(std::vector<int64_t>());
    axes = node.integers("axes");
  } else {
    if (inputs.size() < 3 || !inputs[1] || !inputs[2])
      return Error::badInput("{}: starts and ends are missing", node.shown());
    starts = listOf(*inputs[1]);
    ends = listOf(*inputs[2]);
    if (inputs.size() > 3 && inputs[3])
      axes = listOf(*inputs[3]);
    if (inputs.size() > 4 && inputs[4])
      steps = listOf(*inputs[4]);
  }
  const HostTensor& data = *inputs[0];
  std::vector<SliceDim> dims = TITAN_TRY(sliceDims(node, data.shape, starts, ends, axes, steps));
  std::vector<int64_t> strides = rowMajorStrides(data.shape);
  Shape shape;
  int64_t base = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    shape.push_back(dims[d].count);
    base += dims[d].start * strides[d];
    strides[d] *= dims[d].step;
  }
  return one(strided(data, shape, base, strides));
}

Folded split(const Node& node, const HostInputs& inputs) {
  const HostTensor& data = *inputs[0];
  int64_t axis = TITAN_TRY(
      normalizeAxis(node, node.integer("axis", 0), static_cast<int64_t>(data.shape.size())));
  std::optional<std::vector<int64_t>> given = node.integers("split");
  if (inputs.size() > 1 && inputs[1])
    given = listOf(*inputs[1]);
  std::vector<int64_t> sizes = TITAN_TRY(
      splitSizes(node, data.shape[axis], given, static_cast<int64_t>(node.outputs.size())));
  if (sizes.size() != node.outputs.size())
    return Error::badInput("{}: {} pieces for {} outputs", node.shown(), sizes.size(),
                           node.outputs.size());
  std::vector<int64_t> strides = rowMajorStrides(data.shape);
  HostOutputs pieces;
  for (int64_t begin = 0; int64_t size : sizes) {
    Shape shape = data.shape;
    shape[axis] = size;
    pieces.push_back(strided(data, shape, begin * strides[axis], strides));
    begin += size;
  }
  return std::optional(std::move(pieces));
}

Folded transpose(const Node& node, const HostTensor& data) {
  std::vector<int64_t> permutation =
      TITAN_TRY(permutationOf(node, static_cast<int64_t>(data.shape.size())));
  std::vector<int64_t> strides = rowMajorStrides(data.shape), permuted;
  Shape shape;
  for (int64_t d : permutation) {
    shape.push_back(data.shape[d]);
    permuted.push_back(strides[d]);
  }
  return one(strided(data, shape, 0, permuted));
}

} // namespace

HostTensor strided(const HostTensor& from, const Shape& shape, int64_t base,
                   const std::vector<int64_t>& strides) {
  HostTensor out = HostTensor::empty(from.dtype, shape);
  forEachPosition(shape, base, strides,
                  [&](int64_t, int64_t position) { out.pushFrom(from, position); });
  return out;
}

HostTensor broadcastHost(const HostTensor& value, const Shape& shape) {
  if (value.shape == shape)
    return value;
  // Dimensions that are new or repeat stand still.
  std::vector<int64_t> own = rowMajorStrides(value.shape), strides(shape.size(), 0);
  size_t lead = shape.size() - value.shape.size();
  for (size_t d = 0; d < own.size(); ++d)
    strides[lead + d] = value.shape[d] == 1 ? 0 : own[d];
  return strided(value, shape, 0, strides);
}

Folded foldMovement(const Node& node, const HostInputs& inputs, int64_t largest) {
  const std::string& op = node.opType;
  if (inputs.empty() || !inputs[0])
    return nothing();
  const HostTensor& data = *inputs[0];
  auto operand = [&](size_t i) { return i < inputs.size() ? inputs[i] : nullptr; };
  // Axes are an attribute in old opsets and an operand in new ones.
  auto axes = [&]() -> std::optional<std::vector<int64_t>> {
    return operand(1) ? std::optional(listOf(*operand(1))) : node.integers("axes");
  };
  if (op == "Concat") {
    for (const HostTensor* input : inputs)
      if (!input)
        return Error::badInput("{}: an operand is missing", node.shown());
    return concat(node, inputs, largest);
  }
  if (op == "Slice")
    return slice(node, inputs);
  if (op == "Split")
    return split(node, inputs);
  if (op == "Transpose")
    return transpose(node, data);
  if (op == "Reshape" && operand(1))
    return one(reshaped(data, TITAN_TRY(reshapeTarget(node, data.shape, listOf(*operand(1)),
                                                      node.integer("allowzero", 0) != 0))));
  if (op == "Squeeze")
    return one(reshaped(data, TITAN_TRY(squeezeTarget(node, data.shape, axes()))));
  if (op == "Unsqueeze")
    return one(reshaped(data, TITAN_TRY(unsqueezeTarget(node, data.shape,
                                                        axes().value_or(std::vector<int64_t>())))));
  if (op == "Expand" && operand(1)) {
    Shape shape = TITAN_TRY(expandTarget(node, data.shape, listOf(*operand(1))));
    if (elementCount(shape) > largest)
      return nothing();
    return one(broadcastHost(data, shape));
  }
  if (op == "Shape") {
    int64_t rank = static_cast<int64_t>(data.shape.size());
    auto position = [&](int64_t value) {
      return std::clamp<int64_t>(value < 0 ? value + rank : value, 0, rank);
    };
    int64_t start = position(node.integer("start", 0)), end = position(node.integer("end", rank));
    std::vector<int64_t> extents;
    for (int64_t i = start; i < end; ++i)
      extents.push_back(data.shape[i]);
    return one(HostTensor::vector(extents));
  }
  if (op == "Size")
    return one(HostTensor::scalar(elementCount(data.shape)));
  return nothing();
}

} // namespace titan::frontend
