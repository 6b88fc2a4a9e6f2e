#include "frontend/onnx/Fold.h"

#include <algorithm>

namespace titan::frontend {

Result<std::optional<HostOutputs>> foldReduction(const Node& node, const HostInputs& inputs,
                                                 int64_t /*largest*/) {
  enum Kind { Sum, Mean, Prod, Max, Min };
  static const std::map<std::string, Kind> kinds = {{"ReduceSum", Sum},
                                                    {"ReduceMean", Mean},
                                                    {"ReduceProd", Prod},
                                                    {"ReduceMax", Max},
                                                    {"ReduceMin", Min}};
  auto found = kinds.find(node.opType);
  if (found == kinds.end() || inputs.empty() || !inputs[0])
    return std::optional<HostOutputs>();
  const HostTensor& data = *inputs[0];
  int64_t rank = static_cast<int64_t>(data.shape.size());
  std::optional<std::vector<int64_t>> given = node.integers("axes");
  if (inputs.size() > 1 && inputs[1])
    given = listOf(*inputs[1]);
  if (given && given->empty())
    given.reset();
  if (!given && node.integer("noop_with_empty_axes", 0) != 0)
    return std::optional(HostOutputs{data});
  std::vector<int64_t> axes;
  if (given)
    axes = TITAN_TRY(normalizeAxes(node, *given, rank));
  else
    for (int64_t d = 0; d < rank; ++d)
      axes.push_back(d);
  bool keep = node.integer("keepdims", 1) != 0;

  Shape kept, shape;
  for (int64_t d = 0; d < rank; ++d) {
    bool reduced = std::binary_search(axes.begin(), axes.end(), d);
    kept.push_back(reduced ? 1 : data.shape[d]);
    if (!reduced || keep)
      shape.push_back(kept.back());
  }
  int64_t count = elementCount(shape);
  if (count == 0 || data.size() == 0)
    return std::optional<HostOutputs>();
  HostTensor out = HostTensor::empty(data.dtype, shape);
  // Integers wrap: they are combined as unsigned.
  std::vector<std::optional<double>> reals(count);
  std::vector<std::optional<uint64_t>> integers(count);
  auto combine = [&](auto& total, auto value, bool smaller) {
    if (!total) {
      total = value;
      return;
    }
    switch (found->second) {
    case Sum:
    case Mean:
      *total = *total + value;
      break;
    case Prod:
      *total = *total * value;
      break;
    case Max:
      *total = smaller ? *total : value;
      break;
    case Min:
      *total = smaller ? value : *total;
      break;
    }
  };
  for (int64_t i = 0; i < data.size(); ++i) {
    int64_t to = 0, stride = 1, rest = i;
    for (int64_t d = rank; d-- > 0;) {
      to += kept[d] == 1 ? 0 : rest % data.shape[d] * stride;
      stride *= kept[d];
      rest /= data.shape[d];
    }
    if (data.isFloat())
      combine(reals[to], data.reals[i], reals[to] && data.reals[i] < *reals[to]);
    else
      combine(integers[to], static_cast<uint64_t>(data.integers[i]),
              integers[to] && data.integers[i] < static_cast<int64_t>(*integers[to]));
  }
  int64_t averaged = found->second == Mean ? data.size() / count : 1;
  for (int64_t i = 0; i < count; ++i) {
    if (data.isFloat())
      out.push(*reals[i] / static_cast<double>(averaged));
    else
      out.push(static_cast<int64_t>(*integers[i]) / averaged);
  }
  return std::optional(HostOutputs{std::move(out)});
}

Result<std::optional<HostOutputs>> fold(const Node& node, const HostInputs& inputs,
                                        int64_t largest) {
  if (!node.domain.empty())
    return std::optional<HostOutputs>();
  for (auto rule : {foldElementwise, foldMovement, foldIndexing, foldConstruct, foldReduction})
    if (auto outputs = TITAN_TRY(rule(node, inputs, largest)))
      return outputs;
  return std::optional<HostOutputs>();
}

} // namespace titan::frontend
