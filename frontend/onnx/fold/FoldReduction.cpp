// Folding of reductions.
#include "frontend/onnx/fold/FoldRules.h"

#include <algorithm>

namespace titan::frontend {

namespace {

enum class Kind { Sum, Mean, Prod, Max, Min };

std::optional<Kind> kindOf(const std::string& op) {
  static const std::map<std::string, Kind> kinds = {{"ReduceSum", Kind::Sum},
                                                    {"ReduceMean", Kind::Mean},
                                                    {"ReduceProd", Kind::Prod},
                                                    {"ReduceMax", Kind::Max},
                                                    {"ReduceMin", Kind::Min}};
  auto found = kinds.find(op);
  return found == kinds.end() ? std::nullopt : std::optional(found->second);
}

/// The axes that the node names, as an attribute in old opsets and an operand in new ones; nothing
/// for an empty list.
std::optional<std::vector<int64_t>> namedAxes(const Node& node, const HostInputs& inputs) {
  std::optional<std::vector<int64_t>> axes =
      inputs.size() > 1 && inputs[1] ? listOf(*inputs[1]) : node.integers("axes");
  return axes && axes->empty() ? std::nullopt : axes;
}

double plus(double a, double b) { return a + b; }
double times(double a, double b) { return a * b; }
// Integers wrap, as in the compiled program.
int64_t plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t times(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

template <typename T> T combine(Kind kind, T total, T value) {
  switch (kind) {
  case Kind::Sum:
  case Kind::Mean:
    return plus(total, value);
  case Kind::Prod:
    return times(total, value);
  case Kind::Max:
    return value < total ? total : value;
  case Kind::Min:
    return value < total ? value : total;
  }
  return total;
}

/// Combines the values that go to one element of the result; each of `count` elements gets some.
template <typename T>
std::vector<T> combineAll(Kind kind, const std::vector<T>& values,
                          const std::vector<int64_t>& targets, int64_t count) {
  std::vector<std::optional<T>> totals(count);
  for (size_t i = 0; i < values.size(); ++i) {
    std::optional<T>& total = totals[targets[i]];
    total = total ? combine(kind, *total, values[i]) : values[i];
  }
  std::vector<T> result;
  for (const std::optional<T>& total : totals)
    result.push_back(kind == Kind::Mean
                         ? *total / static_cast<T>(static_cast<int64_t>(values.size()) / count)
                         : *total);
  return result;
}

} // namespace

Folded foldReduction(const Node& node, const HostInputs& inputs, int64_t /*largest*/) {
  std::optional<Kind> kind = kindOf(node.opType);
  if (!kind || inputs.empty() || !inputs[0])
    return nothing();
  const HostTensor& data = *inputs[0];
  auto rank = static_cast<int64_t>(data.shape.size());
  std::optional<std::vector<int64_t>> named = namedAxes(node, inputs);
  if (!named && node.integer("noop_with_empty_axes", 0) != 0)
    return one(data);
  std::vector<int64_t> axes;
  if (named)
    axes = TITAN_TRY(normalizeAxes(node, *named, rank));
  auto isReduced = [&](int64_t d) {
    return !named || std::binary_search(axes.begin(), axes.end(), d);
  };

  bool keep = node.integer("keepdims", 1) != 0;
  Shape kept, shape; // with extents of 1 for what is reduced, and as the node says
  for (int64_t d = 0; d < rank; ++d) {
    kept.push_back(isReduced(d) ? 1 : data.shape[d]);
    if (!isReduced(d) || keep)
      shape.push_back(kept.back());
  }
  int64_t count = elementCount(shape);
  if (count == 0 || data.size() == 0)
    return nothing();

  std::vector<int64_t> strides = rowMajorStrides(kept), targets;
  for (int64_t d = 0; d < rank; ++d)
    if (isReduced(d))
      strides[d] = 0;
  forEachPosition(data.shape, 0, strides,
                  [&](int64_t, int64_t target) { targets.push_back(target); });
  HostTensor out = HostTensor::empty(data.dtype, shape);
  if (data.isFloat())
    for (double value : combineAll(*kind, data.reals, targets, count))
      out.push(value);
  else
    for (int64_t value : combineAll(*kind, data.integers, targets, count))
      out.push(value);
  return one(std::move(out));
}

} // namespace titan::frontend
