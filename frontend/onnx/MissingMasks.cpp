#include "frontend/onnx/MissingMasks.h"

#include "frontend/onnx/HostTensor.h"

#include <algorithm>
#include <limits>
#include <set>

namespace titan::frontend {

namespace {

constexpr NoteCause kTakenForMask = {
    "{} has no data and masks attention scores: it is taken for a causal mask",
    "{} tensors have no data and mask attention scores: they are taken for causal masks: {}"};

/// What an element of the mask means.
enum class Meaning {
  Attended, ///< not zero: attended to
  Masked,   ///< not zero: not attended to
  Added,    ///< added to the score
};

class MaskReader {
public:
  explicit MaskReader(const Graph& graph) : graph_(graph) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const std::string& input : graph.nodes[i].inputs)
        readers_[input].push_back(i);
      for (const std::string& output : graph.nodes[i].outputs)
        producer_[output] = i;
    }
  }

  /// The one meaning that all uses of `value` agree on.
  std::optional<Meaning> meaningOf(const std::string& value) {
    std::set<Meaning> meanings;
    std::set<std::string> seen;
    if (!follow(value, false, seen, meanings) || meanings.size() != 1)
      return std::nullopt;
    return *meanings.begin();
  }

private:
  static bool movesOnly(const std::string& op) {
    static const std::set<std::string> ops = {"Slice",   "Cast",   "CastLike", "Unsqueeze",
                                              "Squeeze", "Expand", "Identity", "Reshape"};
    return ops.contains(op);
  }

  bool follow(const std::string& value, bool inverted, std::set<std::string>& seen,
              std::set<Meaning>& meanings) {
    auto readers = readers_.find(value);
    if (readers == readers_.end() || !seen.insert(value).second)
      return false;
    for (size_t index : readers->second) {
      const Node& node = graph_.nodes[index];
      if (node.outputs.empty())
        return false;
      if (node.opType == "Shape")
        continue;
      bool first = node.inputs[0] == value;
      std::string other = node.inputs.size() > 1 ? node.inputs[first ? 1 : 0] : std::string();
      if (movesOnly(node.opType) && first) {
        if (!follow(node.outputs[0], inverted, seen, meanings))
          return false;
      } else if (node.opType == "Not") {
        if (!follow(node.outputs[0], !inverted, seen, meanings))
          return false;
      } else if (node.opType == "Equal" && scalar(other)) {
        if (!follow(node.outputs[0], inverted != (*scalar(other) == 0), seen, meanings))
          return false;
      } else if (node.opType == "Where" && first && node.inputs.size() == 3) {
        bool whenTrue = isMasking(node.inputs[1]);
        if (whenTrue == isMasking(node.inputs[2]))
          return false;
        meanings.insert(whenTrue != inverted ? Meaning::Masked : Meaning::Attended);
      } else if (node.opType == "Add" && !inverted) {
        meanings.insert(Meaning::Added);
      } else if (node.opType == "Attention" && node.inputs.size() > 3 && node.inputs[3] == value) {
        meanings.insert(inverted ? Meaning::Masked : Meaning::Attended);
      } else {
        return false;
      }
    }
    return true;
  }

  /// The one element of a constant, also behind casts.
  std::optional<double> scalar(std::string value) const {
    for (int steps = 0; steps < 8; ++steps) {
      auto tensor = graph_.initializers.find(value);
      if (tensor != graph_.initializers.end()) {
        if (elementCount(tensor->second.shape) != 1 || !tensor->second.missing.empty())
          return std::nullopt;
        Result<HostTensor> host = toHost(tensor->second);
        return host.ok() ? std::optional(host->real(0)) : std::nullopt;
      }
      auto node = producer_.find(value);
      if (node == producer_.end() || !movesOnly(graph_.nodes[node->second].opType))
        return std::nullopt;
      value = graph_.nodes[node->second].inputs[0];
    }
    return std::nullopt;
  }

  bool isMasking(const std::string& value) const {
    std::optional<double> number = scalar(value);
    return number && *number <= -1e4;
  }

  const Graph& graph_;
  std::map<std::string, std::vector<size_t>> readers_;
  std::map<std::string, size_t> producer_;
};

bool isSquare(const Shape& shape) {
  size_t rank = shape.size();
  return rank >= 2 && shape[rank - 1] == shape[rank - 2] && shape[rank - 1] > 1 &&
         elementCount(shape) == shape[rank - 1] * shape[rank - 1] &&
         elementCount(shape) <= kLargestFolded;
}

} // namespace

void assumeCausalMasks(Graph& graph) {
  MaskReader reader(graph);
  for (auto& [name, tensor] : graph.initializers) {
    if (tensor.missing.empty() || !isSquare(tensor.shape))
      continue;
    std::optional<Meaning> meaning = reader.meaningOf(name);
    if (!meaning)
      continue;
    HostTensor mask = HostTensor::empty(tensor.dtype, tensor.shape);
    if (*meaning == Meaning::Added && (!mask.isFloat()))
      continue;
    int64_t size = tensor.shape.back();
    for (int64_t i = 0; i < size * size; ++i) {
      bool attended = i % size <= i / size;
      double added = attended ? 0 : -std::numeric_limits<double>::infinity();
      bool set = attended == (*meaning == Meaning::Attended);
      if (mask.isFloat())
        mask.push(*meaning == Meaning::Added ? added : static_cast<double>(set));
      else
        mask.push(static_cast<int64_t>(set));
    }
    tensor.inlineBytes = std::make_shared<const std::string>(toBytes(mask));
    tensor.missing.clear();
    tensor.span.reset();
    tensor.assumed = true;
    graph.notes.add(kTakenForMask, fmt::format("{} {}", inQuotes(name), toString(tensor.shape)));
  }
}

} // namespace titan::frontend
