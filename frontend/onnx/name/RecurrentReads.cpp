#include "frontend/onnx/name/RecurrentReads.h"

#include "frontend/onnx/name/Recurrent.h"

#include <algorithm>
#include <set>
#include <utility>

namespace titan::frontend {

namespace {

constexpr int kLongestWay = 16; // nodes from a tensor to its layer

bool isRecurrent(const Node& node) { return !gatesOf(node).empty(); }

/// Does the node pass on elements of its first operand, all or some of them?
bool passesOn(const Node& node) {
  static const std::set<std::string_view> ops = {"Slice",    "Unsqueeze", "Squeeze", "Reshape",
                                                 "Identity", "Cast",      "CastLike"};
  return ops.contains(node.opType);
}

} // namespace

std::optional<RecurrentPart> RecurrentReads::partOf(Read read) const {
  std::vector<size_t> place;
  bool isGate = false;
  for (int steps = 0; steps < kLongestWay; ++steps) {
    const Node& reader = graph_.nodes[read.node];
    if (isRecurrent(reader)) {
      if (read.operand < kInputMatrix || read.operand > kRecurrentBias)
        return std::nullopt;
      place.push_back(read.operand);
      std::ranges::reverse(place);
      return RecurrentPart{read.node, std::move(place)};
    }
    if (reader.opType == "Concat") {
      if (!isGate)
        place.push_back(read.operand);
      isGate = false;
    } else if (read.operand != 0 || !passesOn(reader)) {
      return std::nullopt;
    }
    isGate |= reader.opType == "Slice";
    const std::vector<Read>& next = dataflow_.readsOf(reader.outputs.front());
    if (next.empty())
      return std::nullopt;
    read = next.front();
  }
  return std::nullopt;
}

std::string RecurrentReads::matrixBeside(const RecurrentPart& part) const {
  const Node& node = graph_.nodes[part.node];
  if (!node.hasInput(kRecurrentMatrix))
    return {};
  size_t direction = node.text("direction", "forward") == "bidirectional" && part.place.size() > 1
                         ? part.place[1]
                         : 0;
  std::string value = node.inputs[kRecurrentMatrix];
  for (int steps = 0; steps < kLongestWay; ++steps) {
    if (graph_.initializers.contains(value))
      return value;
    const std::optional<size_t> producer = dataflow_.producerOf(value);
    if (!producer)
      return {};
    const Node& before = graph_.nodes[*producer];
    const bool joins = before.opType == "Concat";
    if (!joins && !passesOn(before))
      return {};
    const size_t operand = joins ? std::exchange(direction, 0) : 0;
    if (!before.hasInput(operand))
      return {};
    value = before.inputs[operand];
  }
  return {};
}

std::string RecurrentReads::nameOf(const RecurrentPart& part) const {
  std::string name = matrixBeside(part);
  constexpr std::string_view kMatrix = "weight_hh"; // before the layer, "_l0"
  const size_t at = name.rfind(std::string(kMatrix) + "_l");
  if (at == std::string::npos || (at > 0 && name[at - 1] != '.'))
    return {};
  return name.replace(at, kMatrix.size(), recurrentLeaf(part.place.front(), part.place.back()));
}

} // namespace titan::frontend
