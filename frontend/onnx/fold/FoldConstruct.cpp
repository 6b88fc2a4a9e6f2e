// Folding of ops that make tensors up: ranges, fills, triangles, repetitions, running sums.
#include "frontend/onnx/fold/FoldRules.h"

#include <algorithm>
#include <cmath>

namespace titan::frontend {

namespace {

Folded range(const Node& node, const HostInputs& inputs, int64_t largest) {
  const HostTensor &start = *inputs[0], &limit = *inputs[1], &delta = *inputs[2];
  if (start.size() != 1 || limit.size() != 1 || delta.size() != 1 || start.dtype != limit.dtype ||
      start.dtype != delta.dtype)
    return Error::badInput("{}: start, limit and delta must be scalars of one type", node.shown());
  double from = start.real(0), to = limit.real(0), step = delta.real(0);
  if (!std::isfinite(from) || !std::isfinite(to) || !std::isfinite(step) || step == 0)
    return Error::badInput("{}: a range from {} to {} by {}: the three must be finite and delta "
                           "not 0",
                           node.shown(), from, to, step);
  // Backwards there are none; the quotient may be beyond what an integer holds, either way.
  double count = std::max(0.0, std::ceil((to - from) / step));
  if (count > static_cast<double>(largest))
    return Error::badInput("{}: a range of {} elements, more than the {} that are folded",
                           node.shown(), count, largest);
  HostTensor out = HostTensor::empty(start.dtype, {static_cast<int64_t>(count)});
  for (int64_t i = 0; i < out.shape[0]; ++i) {
    if (out.isFloat())
      out.push(start.reals[0] + static_cast<double>(i) * delta.reals[0]);
    else
      out.push(static_cast<int64_t>(static_cast<uint64_t>(start.integers[0]) +
                                    static_cast<uint64_t>(i) *
                                        static_cast<uint64_t>(delta.integers[0])));
  }
  return one(std::move(out));
}

Folded constantOfShape(const Node& node, const HostTensor& target, int64_t largest) {
  Shape shape = listOf(target);
  if (TITAN_TRY(checkedElementCount(shape, node.shown())) > largest)
    return nothing();
  HostTensor value{DType::F32, {1}, {}, {0.0}};
  if (const ::onnx::AttributeProto* attribute = node.find("value");
      attribute && attribute->has_t()) {
    ::onnx::TensorProto proto = attribute->t();
    value = TITAN_TRY(toHost(TITAN_TRY(takeTensor(proto, node.shown()))));
    if (value.size() != 1)
      return Error::badInput("{}: a value of {} elements", node.shown(), value.size());
  }
  value.shape = {};
  return one(broadcastHost(value, shape));
}

/// Keeps column - row <= k (lower) or >= k (upper) of the last two dimensions.
Folded trilu(const Node& node, const HostTensor& data, const HostTensor* diagonal) {
  if (data.shape.size() < 2)
    return Error::badInput("{}: {} is no matrix", node.shown(), toString(data.shape));
  if (diagonal && diagonal->size() != 1)
    return Error::badInput("{}: k has {} elements", node.shown(), diagonal->size());
  int64_t rows = data.shape[data.shape.size() - 2], columns = data.shape.back();
  int64_t k = std::clamp(diagonal ? diagonal->integer(0) : 0, -rows - 1, columns + 1);
  bool upper = node.integer("upper", 1) != 0;
  HostTensor out = HostTensor::empty(data.dtype, data.shape);
  for (int64_t i = 0, count = data.size(); i < count; ++i) {
    int64_t offset = i % columns - i / columns % rows;
    if (upper ? offset >= k : offset <= k)
      out.pushFrom(data, i);
    else
      out.push(int64_t(0));
  }
  return one(std::move(out));
}

Folded eyeLike(const Node& node, const HostTensor& like) {
  if (like.shape.size() != 2)
    return Error::badInput("{}: {} is no matrix", node.shown(), toString(like.shape));
  int64_t type = node.integer("dtype", 0), k = node.integer("k", 0);
  std::optional<DType> dtype = type == 0 ? like.dtype : elementType(type);
  if (!dtype)
    return nothing();
  HostTensor out = HostTensor::empty(*dtype, like.shape);
  for (int64_t i = 0, columns = like.shape[1]; i < like.size(); ++i)
    out.push(int64_t(i % columns - i / columns == k));
  return one(std::move(out));
}

Folded tile(const Node& node, const HostTensor& data, const HostTensor& repeats, int64_t largest) {
  std::vector<int64_t> counts = listOf(repeats);
  if (counts.size() != data.shape.size())
    return Error::badInput("{}: {} repeats for rank {}", node.shown(), counts.size(),
                           data.shape.size());
  Shape shape;
  for (size_t d = 0; d < counts.size(); ++d) {
    TITAN_TRY(checkedElementCount(std::vector<int64_t>{counts[d], data.shape[d]}, node.shown()));
    shape.push_back(counts[d] * data.shape[d]);
  }
  int64_t count = TITAN_TRY(checkedElementCount(shape, node.shown()));
  if (count > largest)
    return nothing();
  HostTensor out = HostTensor::empty(data.dtype, shape);
  for (int64_t i = 0; i < count; ++i) {
    int64_t position = 0, stride = 1, rest = i;
    for (size_t d = shape.size(); d-- > 0;) {
      position += rest % shape[d] % data.shape[d] * stride;
      stride *= data.shape[d];
      rest /= shape[d];
    }
    out.pushFrom(data, position);
  }
  return one(std::move(out));
}

Folded cumSum(const Node& node, const HostTensor& data, const HostTensor& along) {
  if (along.size() != 1)
    return Error::badInput("{}: the axis has {} elements", node.shown(), along.size());
  int64_t axis =
      TITAN_TRY(normalizeAxis(node, along.integer(0), static_cast<int64_t>(data.shape.size())));
  bool reverse = node.integer("reverse", 0) != 0, exclusive = node.integer("exclusive", 0) != 0;
  int64_t extent = data.shape[axis], inner = 1;
  for (size_t d = axis + 1; d < data.shape.size(); ++d)
    inner *= data.shape[d];
  HostTensor sums = data;
  for (int64_t start = 0, count = data.size(); start < count; ++start) {
    if (start / inner % extent != 0)
      continue;
    double real = 0;
    uint64_t integer = 0;
    for (int64_t i = 0; i < extent; ++i) {
      int64_t at = start + (reverse ? extent - 1 - i : i) * inner;
      double before = real;
      uint64_t countBefore = integer;
      if (data.isFloat()) {
        HostTensor rounded = HostTensor::empty(data.dtype, {});
        rounded.push(real + data.reals[at]);
        real = rounded.reals[0];
        sums.reals[at] = exclusive ? before : real;
      } else {
        HostTensor wrapped = HostTensor::empty(data.dtype, {});
        wrapped.push(static_cast<int64_t>(integer + static_cast<uint64_t>(data.integers[at])));
        integer = static_cast<uint64_t>(wrapped.integers[0]);
        sums.integers[at] = static_cast<int64_t>(exclusive ? countBefore : integer);
      }
    }
  }
  return one(std::move(sums));
}

} // namespace

Folded foldConstruct(const Node& node, const HostInputs& inputs, int64_t largest) {
  const std::string& op = node.opType;
  if (inputs.empty() || !inputs[0])
    return nothing();
  auto operand = [&](size_t i) { return i < inputs.size() ? inputs[i] : nullptr; };
  if (op == "Range" && operand(1) && operand(2))
    return range(node, inputs, largest);
  if (op == "ConstantOfShape")
    return constantOfShape(node, *inputs[0], largest);
  if (op == "Trilu")
    return trilu(node, *inputs[0], operand(1));
  if (op == "EyeLike")
    return eyeLike(node, *inputs[0]);
  if (op == "Tile" && operand(1))
    return tile(node, *inputs[0], *operand(1), largest);
  if (op == "CumSum" && operand(1))
    return cumSum(node, *inputs[0], *operand(1));
  return nothing();
}

} // namespace titan::frontend
